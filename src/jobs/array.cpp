#include "jobs/array.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpurota::jobs {
namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

tl::unexpected<Error> not_an_array(std::string_view text) {
  return fail(Code::kInvalid,
              fmt::format("'{}' does not say which items an array has: write the first and the "
                          "last index, 1-50, or single ones, 1,4,7-9",
                          display_text(text, 60)));
}

Result<Indices::Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = number_in(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
  if (!first || !last) return not_an_array(text);
  if (*first > *last) {
    return fail(Code::kInvalid, fmt::format("the array {0}-{1} has no items: write the smaller "
                                            "index first, {1}-{0}",
                                            *first, *last));
  }
  return Indices::Range{*first, *last};
}

}  // namespace

Indices Indices::up_to(std::size_t count) {
  Indices indices;
  if (count > 0) indices.ranges_ = {{1, static_cast<std::int64_t>(count)}};
  return indices;
}

Result<Indices> Indices::parse(std::string_view text) {
  Indices indices;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    GPUROTA_ASSIGN_OR_RETURN(const Range range, parse_range(rest.substr(0, comma)));
    if (range.last > kMostIndex || range.last - range.first >= std::int64_t{kMostItems} ||
        indices.count() + static_cast<std::size_t>(range.last - range.first) + 1 > kMostItems) {
      return fail(Code::kInvalid,
                  fmt::format("an array has at most {} items, with indices up to {}: divide it, or "
                              "let each item do several of the steps",
                              kMostItems, kMostIndex));
    }
    indices.ranges_.push_back(range);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(indices.ranges_.begin(), indices.ranges_.end(),
            [](const Range& one, const Range& other) { return one.first < other.first; });
  std::vector<Range> merged;
  for (const Range& range : indices.ranges_) {
    if (!merged.empty() && range.first <= merged.back().last) {
      return fail(Code::kInvalid, fmt::format("the array {} has the index {} twice: name each once",
                                              display_text(text, 60), range.first));
    }
    if (!merged.empty() && range.first == merged.back().last + 1) {
      merged.back().last = range.last;
    } else {
      merged.push_back(range);
    }
  }
  indices.ranges_ = std::move(merged);
  return indices;
}

std::size_t Indices::count() const {
  std::size_t count = 0;
  for (const Range& range : ranges_)
    count += static_cast<std::size_t>(range.last - range.first + 1);
  return count;
}

std::optional<std::int64_t> Indices::from(std::int64_t index) const {
  for (const Range& range : ranges_) {
    if (index <= range.last) return std::max(index, range.first);
  }
  return std::nullopt;
}

bool Indices::has(std::int64_t index) const { return from(index) == index; }

std::string to_string(const Indices& indices) {
  std::string text;
  for (const Indices::Range& range : indices.ranges_) {
    if (!text.empty()) text += ",";
    text += std::to_string(range.first);
    if (range.last > range.first) text += fmt::format("-{}", range.last);
  }
  return text;
}

Result<void> check_at_once(std::int64_t at_once) {
  if (at_once >= 1 && at_once <= kMostAtOnce) return {};
  return fail(Code::kInvalid, fmt::format("from 1 to {} items of an array can run at once, not {}",
                                          kMostAtOnce, at_once));
}

Result<ArrayText> parse_array(std::string_view text) {
  const auto percent = text.find('%');
  ArrayText array;
  if (percent != std::string_view::npos) {
    const auto at_once = number_in(text.substr(percent + 1));
    if (!at_once) {
      return fail(Code::kInvalid,
                  fmt::format("'{}' does not say how many items run at once: write 1-50%4 for four",
                              display_text(text.substr(percent), 60)));
    }
    GPUROTA_TRY(check_at_once(*at_once));
    array.at_once = static_cast<int>(*at_once);
  }
  GPUROTA_ASSIGN_OR_RETURN(array.indices, Indices::parse(text.substr(0, percent)));
  return array;
}

const char* to_string(ItemKind kind) {
  switch (kind) {
    case ItemKind::kWaiting:
      return "waiting";
    case ItemKind::kRunning:
      return "running";
    case ItemKind::kDone:
      return "done";
    case ItemKind::kFailed:
      return "failed";
    case ItemKind::kUnknown:
      return "unknown";
    case ItemKind::kCancelled:
      break;
  }
  return "cancelled";
}

ItemKind kind_of(const JobState& state) {
  const EndReason last = state.history.empty() ? EndReason::kStopped : state.history.back().reason;
  switch (state.phase) {
    case Phase::kFinished:
      return ItemKind::kDone;
    case Phase::kFailed:
      return last == EndReason::kUnknown ? ItemKind::kUnknown : ItemKind::kFailed;
    // The owner did not stop an item that left for a booking, or whose lease was taken away.
    case Phase::kStopped:
      return last == EndReason::kStopped ? ItemKind::kCancelled : ItemKind::kFailed;
    case Phase::kCancelled:
      return ItemKind::kCancelled;
    case Phase::kWaiting:
    case Phase::kRunning:
    case Phase::kStopping:
    case Phase::kBackingOff:
    case Phase::kChained:
      break;
  }
  return ItemKind::kWaiting;
}

int exit_status_of(const JobState& state) {
  if (kind_of(state) == ItemKind::kDone) return 0;
  if (state.history.empty()) return 1;
  const RunEnd& end = state.history.back();
  if (end.reason == EndReason::kExited && end.code != 0) return end.code;
  return end.reason == EndReason::kSignalled ? 128 + end.code : 1;
}

std::string items_text(const ItemCounts& counts) {
  std::string text;
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(counts.running, "running");
  add(counts.done, "done");
  add(counts.failed, "failed");
  add(counts.unknown, "unknown");
  add(counts.cancelled, "cancelled");
  add(counts.waiting, counts.waiting == 1 ? "waits" : "wait");
  return text;
}

JobState to_retry(JobState state) {
  state.phase = Phase::kWaiting;
  state.end_detail.clear();
  state.failures = state.brief = 0;
  return state;
}

std::size_t& Items::count_of(ItemKind kind) {
  switch (kind) {
    case ItemKind::kDone:
      return ended_.done;
    case ItemKind::kFailed:
      return ended_.failed;
    case ItemKind::kUnknown:
      return ended_.unknown;
    case ItemKind::kCancelled:
      return ended_.cancelled;
    case ItemKind::kRunning:
    case ItemKind::kWaiting:
      break;
  }
  return ended_.waiting;
}

ItemCounts Items::counts() const {
  ItemCounts counts = ended_;
  counts.running = on_.size();
  counts.waiting = indices_.count() - on_.size() - (resting_.size() - again_.size());
  return counts;
}

std::optional<std::int64_t> Items::next() const {
  if (!again_.empty()) return *again_.begin();
  return indices_.from(fresh_from_);
}

void Items::pass_begun() {
  auto at = indices_.from(fresh_from_);
  while (at && (resting_.contains(*at) || on_.contains(*at))) at = indices_.from(*at + 1);
  fresh_from_ = at.value_or(kMostIndex + 1);
}

const JobState* Items::state_of(std::int64_t index) const {
  const auto at = resting_.find(index);
  return at == resting_.end() ? nullptr : &at->second;
}

std::vector<std::int64_t> Items::known() const {
  std::vector<std::int64_t> indices;
  for (const auto& [index, state] : resting_) indices.push_back(index);
  return indices;
}

ItemKind Items::kind(std::int64_t index) const {
  if (on_.contains(index)) return ItemKind::kRunning;
  const JobState* const state = state_of(index);
  return state ? kind_of(*state) : ItemKind::kWaiting;
}

int Items::worst_exit_status() const {
  int worst = 0;
  for (const auto& [index, state] : resting_) {
    if (kind_of(state) != ItemKind::kWaiting) worst = std::max(worst, exit_status_of(state));
  }
  return worst;
}

JobState Items::begin(std::int64_t index) {
  JobState state;
  if (const auto at = resting_.find(index); at != resting_.end()) {
    --count_of(kind_of(at->second));
    state = std::move(at->second);
    resting_.erase(at);
  }
  again_.erase(index);
  on_.insert(index);
  pass_begun();
  return state;
}

void Items::rest(std::int64_t index, JobState state) {
  on_.erase(index);
  if (const auto at = resting_.find(index); at != resting_.end()) {
    --count_of(kind_of(at->second));
    again_.erase(index);
  }
  const ItemKind kind = kind_of(state);
  ++count_of(kind);
  if (kind == ItemKind::kWaiting) again_.insert(index);
  resting_[index] = std::move(state);
  pass_begun();
}

std::vector<std::int64_t> Items::failed_from(std::int64_t index, std::size_t most) const {
  std::vector<std::int64_t> failed;
  for (auto at = resting_.lower_bound(index); at != resting_.end() && failed.size() < most; ++at) {
    const ItemKind kind = kind_of(at->second);
    if (kind != ItemKind::kDone && kind != ItemKind::kWaiting) failed.push_back(at->first);
  }
  return failed;
}

void Items::reset() { *this = Items(std::move(indices_)); }

}  // namespace gpurota::jobs
