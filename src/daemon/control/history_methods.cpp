#include "daemon/control/history_methods.h"

#include "base/steps.h"
#include "daemon/control/calls.h"
#include "daemon/control/series_answer.h"
#include "daemon/history/usage_sums.h"
#include "proto/codec.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace gpurota::daemon {
namespace {

// Events in one answer: tens of kilobytes.
constexpr std::size_t kBatch = 100;
constexpr std::size_t kBytesInAPiece = std::size_t{32} << 10;
// The most events that a caller without `more` gets.
constexpr std::size_t kMostAtOnce = 1000;
constexpr std::size_t kMostRows = 2000;
// Rows of usage that a piece reads.
constexpr std::size_t kRowsInAPiece = 256;
constexpr auto kUsualTime = std::chrono::hours(24 * 30);

bool is_wanted(const proto::Events& call, const ports::StoredEvent& event) {
  return (!call.since || event.time >= *call.since) &&
         (!call.lease_id || event.lease == call.lease_id) && (!call.uid || event.uid == call.uid);
}

class EventStream final : public AnswerStream {
 public:
  EventStream(const EventLog& log, const Views& views, uid_t viewer, const proto::Events& call)
      : log_(log),
        views_(views),
        viewer_(viewer),
        call_(call),
        cursor_(call_.after ? EventCursor(log, *call_.after) : EventCursor(log)) {}

  std::optional<std::string> next() override {
    if (over_) return std::nullopt;
    const bool follows = call_.follow.value_or(false);
    // A client that follows gets only stored events: the client may later ask this daemon or the
    // next one for the events after the number of its last event.
    const EventCursor::Batch batch = cursor_.next(
        kBatch,
        [this](const ports::StoredEvent& event) {
          return is_wanted(call_, event) && views_.may_know_of(event, viewer_);
        },
        follows ? log_.stored_id() : log_.last_id());
    over_ = cursor_.at_end() && !follows;
    // If no event of this batch is wanted and there are more, an empty answer makes the stream
    // continue in the next turn.
    const bool has_more = !cursor_.is_at(follows ? log_.stored_id() : log_.last_id());
    if (batch.events.empty() && batch.missed == 0 && !over_ && begun_ && !has_more) {
      return std::nullopt;
    }
    begun_ = true;
    proto::Events::Reply reply;
    reply.missed = batch.missed;
    for (const ports::StoredEvent* event : batch.events) {
      reply.events.push_back(views_.event(*event, viewer_));
    }
    return proto::reply_json<proto::Events>(reply, !over_);
  }
  bool over() const override { return over_; }

 private:
  const EventLog& log_;
  const Views& views_;
  uid_t viewer_;
  proto::Events call_;
  EventCursor cursor_;
  bool begun_ = false;
  bool over_ = false;
};

// A single answer, for a client that takes no stream: the newest events, or the first events after
// the one that the call names.
class EventsPage final : public LongAnswer {
 public:
  EventsPage(const EventLog& log, const Views& views, uid_t viewer, const proto::Events& call)
      : log_(log),
        views_(views),
        viewer_(viewer),
        call_(call),
        looked_at_(call_.after.value_or(0)),
        last_(log.last_id()) {}

  std::optional<std::string> go_on() override {
    if (looked_at_ < last_) {
      find_wanted();
      return std::nullopt;
    }
    choose();
    for (std::size_t made = 0; made < kBytesInAPiece && at_ < wanted_.size(); ++at_) {
      const auto event = log_.events().find(wanted_[at_]);
      // The log has discarded the event meanwhile.
      if (event == log_.events().end()) continue;
      const std::string item = proto::item_json(views_.event(event->second, viewer_));
      if (!items_.empty()) items_ += ',';
      items_ += item;
      made += item.size();
      steps::add(steps::Kind::kBytes, item.size());
    }
    if (at_ < wanted_.size()) return std::nullopt;
    return proto::with_items(proto::reply_json<proto::Events>(page_), "events", items_);
  }

 private:
  void find_wanted() {
    auto it = log_.events().upper_bound(looked_at_);
    for (std::size_t i = 0; i < EventCursor::kMostLookedAt; ++i, ++it) {
      if (it == log_.events().end() || it->first > last_) {
        looked_at_ = last_;
        return;
      }
      steps::add(steps::Kind::kEntries);
      looked_at_ = it->first;
      if (is_wanted(call_, it->second) && views_.may_know_of(it->second, viewer_)) {
        wanted_.push_back(it->first);
      }
    }
  }
  void choose() {
    if (std::exchange(chosen_, true)) return;
    const std::size_t count = std::min(wanted_.size(), kMostAtOnce);
    page_.left_out = wanted_.size() - count;
    if (!call_.after) {
      wanted_.erase(wanted_.begin(), wanted_.end() - static_cast<std::ptrdiff_t>(count));
    }
    wanted_.resize(count);
  }

  const EventLog& log_;
  const Views& views_;
  uid_t viewer_;
  proto::Events call_;
  std::uint64_t looked_at_, last_;  // ids
  std::vector<std::uint64_t> wanted_;
  bool chosen_ = false;
  std::size_t at_ = 0;
  std::string items_;
  proto::Events::Reply page_;
};

std::optional<ports::UsageBy> usage_by(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWords = {"user", "group", "note", "gpu", "kind"};
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return std::nullopt;
  return static_cast<ports::UsageBy>(at - kWords.begin());
}

class ReportAnswer final : public LongAnswer {
 public:
  ReportAnswer(Recorder& recorder, const Views& views, uid_t viewer, proto::Report::Reply reply,
               ports::UsageBy by, std::optional<uid_t> of)
      : recorder_(recorder),
        views_(views),
        reply_(std::move(reply)),
        by_(by),
        of_(of),
        sums_({by, reply_.since, reply_.until},
              [&views, viewer](uid_t uid) { return !views.sees_all(viewer, uid); }) {}

  std::optional<std::string> go_on() override {
    switch (step_) {
      case Step::kRead:
        return read();
      case Step::kName:
        name();
        return std::nullopt;
      case Step::kChoose:
        choose();
        return std::nullopt;
      case Step::kDone:
        break;
    }
    return proto::reply_json<proto::Report>(reply_);
  }

 private:
  std::optional<std::string> read() {
    // Store the usage that has not ended, so that it is part of the answer.
    if (!reader_.has_begun()) recorder_.store_usage();
    auto rows = reader_.next(kRowsInAPiece);
    if (!rows) return proto::error_json(proto::wire_error(rows.error()));
    if (rows->empty()) step_ = Step::kName;
    std::erase_if(*rows, [this](const ports::StoredUsage& row) { return of_ && row.uid != *of_; });
    sums_.add(*rows);
    return std::nullopt;
  }
  // Adds up the sums that have the same name in the report, such as the sums of the users of one
  // group. Notes that the reader may not see share the row without a key.
  void name() {
    for (std::size_t i = 0; i < kRowsInAPiece; ++i) {
      auto next = sums_.take();
      if (!next) {
        next_ = rows_.begin();
        step_ = Step::kChoose;
        return;
      }
      auto& [key, sum] = *next;
      if (by_ == ports::UsageBy::kUser) key.second = views_.user_name(key.first);
      const auto whole = [](double ms) { return static_cast<std::uint64_t>(ms); };
      rows_[std::move(key.second)].add({sum.leases, whole(sum.gpu_ms), whole(sum.mib_ms),
                                        whole(sum.busy_ms), whole(sum.idle_ms)});
    }
  }
  // Chooses the largest rows. The rest goes into the row without a key, so that the total is right.
  void choose() {
    for (std::size_t i = 0; i < kRowsInAPiece && next_ != rows_.end(); ++i) {
      const auto row = next_++;
      if (!row->first) continue;
      largest_.emplace(row->second.gpu_ms / 1000, row);
      if (largest_.size() <= kMostRows) continue;
      const auto smallest = std::prev(largest_.end());
      rows_[std::nullopt].add(smallest->second->second);
      rows_.erase(smallest->second);
      largest_.erase(smallest);
    }
    if (next_ != rows_.end()) return;
    if (const auto rest = rows_.find(std::nullopt); rest != rows_.end()) {
      largest_.emplace(rest->second.gpu_ms / 1000, rest);
    }
    for (const auto& [seconds, row] : largest_) {
      const Row& sum = row->second;
      reply_.rows.push_back({row->first, sum.leases, seconds, sum.mib_ms / 1000, sum.busy_ms / 1000,
                             sum.idle_ms / 1000});
    }
    step_ = Step::kDone;
  }

  struct Row {
    void add(const Row& row) {
      leases += row.leases;
      gpu_ms += row.gpu_ms;
      mib_ms += row.mib_ms;
      busy_ms += row.busy_ms;
      idle_ms += row.idle_ms;
    }
    std::uint64_t leases = 0, gpu_ms = 0, mib_ms = 0, busy_ms = 0, idle_ms = 0;
  };
  using Rows = std::map<std::optional<std::string>, Row>;
  enum class Step { kRead, kName, kChoose, kDone };

  Recorder& recorder_;
  const Views& views_;
  proto::Report::Reply reply_;
  ports::UsageBy by_;
  std::optional<uid_t> of_;  // empty: of all users
  UsageSums sums_;
  UsageReader reader_ = recorder_.read_usage();
  Step step_ = Step::kRead;
  Rows rows_;
  Rows::iterator next_;  // the next row for choose()
  std::multimap<std::uint64_t, Rows::iterator, std::greater<>> largest_;  // by GPU seconds
};

}  // namespace

Outcome HistoryMethods::on(const Caller& caller, const proto::Events& call) {
  const EventLog& log = parts_.recorder.events();
  Outcome outcome;
  outcome.long_answer = std::make_shared<EventsPage>(log, parts_.views, caller.uid, call);
  outcome.stream = std::make_shared<EventStream>(log, parts_.views, caller.uid, call);
  return outcome;
}

Outcome HistoryMethods::on(const Caller& caller, const proto::Report& call) {
  proto::Report::Reply reply;
  reply.until = call.until.value_or(parts_.wall_clock());
  reply.since = call.since.value_or(reply.until - kUsualTime);
  reply.by = call.by.value_or("user");
  const auto by = usage_by(reply.by);
  if (!by) return {.answer = proto::error_json(proto::invalid_parameter("by"))};
  if (reply.since > reply.until) {
    return refused({Code::kInvalid, 0, "a report begins (`since`) before it ends (`until`, now)"});
  }
  Outcome outcome;
  outcome.long_answer = std::make_shared<ReportAnswer>(parts_.recorder, parts_.views, caller.uid,
                                                       std::move(reply), *by, call.uid);
  return outcome;
}

Outcome HistoryMethods::on(const Caller&, const proto::History& call) {
  auto answer = make_series_answer(call, parts_.gpus, parts_.series, parts_.wall_clock());
  if (!answer) return refused(answer.error());
  Outcome outcome;
  outcome.long_answer = std::move(*answer);
  return outcome;
}

}  // namespace gpurota::daemon
