// The calls about what was: events and the report. The other part of control_methods.cpp.
#include "daemon/calls.h"
#include "daemon/control_methods.h"
#include "proto/codec.h"
#include "proto/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace gpurota::daemon {
namespace {

// So many in one answer: some ten kilobytes.
constexpr std::size_t kBatch = 100;
// What a caller without `more` gets.
constexpr std::size_t kMostAtOnce = 1000;
constexpr std::size_t kMostRows = 10000;
constexpr auto kUsualTime = std::chrono::hours(24 * 30);

bool is_wanted(const proto::Events& call, const ports::StoredEvent& event) {
  return (!call.since || event.time >= *call.since) &&
         (!call.lease_id || event.lease == call.lease_id);
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
    // Who follows will ask again with the number of the last one, perhaps the next daemon.
    const EventCursor::Batch batch = cursor_.next(
        kBatch,
        [this](const ports::StoredEvent& event) {
          return is_wanted(call_, event) && views_.may_know_of(event, viewer_);
        },
        follows ? log_.stored_id() : log_.last_id());
    over_ = cursor_.at_end() && !follows;
    if (batch.events.empty() && batch.missed == 0 && !over_ && begun_) return std::nullopt;
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

std::optional<ports::UsageBy> usage_by(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWords = {"user", "group", "note", "gpu", "kind"};
  const auto at = std::find(kWords.begin(), kWords.end(), word);
  if (at == kWords.end()) return std::nullopt;
  return static_cast<ports::UsageBy>(at - kWords.begin());
}

}  // namespace

Outcome ControlMethods::on(const Caller& caller, const proto::Events& call) {
  const EventLog& log = parts_.recorder.events();
  Outcome outcome;
  std::vector<const ports::StoredEvent*> wanted;
  auto it = call.after ? log.events().upper_bound(*call.after) : log.events().begin();
  for (; it != log.events().end(); ++it) {
    if (is_wanted(call, it->second) && parts_.views.may_know_of(it->second, caller.uid)) {
      wanted.push_back(&it->second);
    }
  }
  proto::Events::Reply page;
  const std::size_t count = std::min(wanted.size(), kMostAtOnce);
  page.left_out = wanted.size() - count;
  const auto first =
      call.after ? wanted.begin() : wanted.end() - static_cast<std::ptrdiff_t>(count);
  for (auto each = first; each != first + static_cast<std::ptrdiff_t>(count); ++each) {
    page.events.push_back(parts_.views.event(**each, caller.uid));
  }
  outcome.answer = proto::reply_json<proto::Events>(page);
  outcome.stream = std::make_shared<EventStream>(log, parts_.views, caller.uid, call);
  return outcome;
}

Outcome ControlMethods::on(const Caller& caller, const proto::Report& call) {
  proto::Report::Reply reply;
  reply.until = call.until.value_or(parts_.wall_clock());
  reply.since = call.since.value_or(reply.until - kUsualTime);
  reply.by = call.by.value_or("user");
  const auto by = usage_by(reply.by);
  if (!by) return {proto::error_json(proto::invalid_parameter("by")), {}, {}, {}, {}};
  if (reply.since > reply.until) {
    return refused({Code::kInvalid, 0, "a report begins (`since`) before it ends (`until`, now)"});
  }
  const auto sums = parts_.recorder.usage(*by, reply.since, reply.until);
  if (!sums) return {proto::error_json(proto::wire_error(sums.error())), {}, {}, {}, {}};
  // Notes are for their owner: those of all others are one row without a key.
  std::map<std::optional<std::string>, ports::UsageSum> rows;
  for (const ports::UsageSum& sum : *sums) {
    std::optional<std::string> key = sum.key;
    if (by == ports::UsageBy::kUser) key = parts_.views.user_name(sum.uid);
    if (by == ports::UsageBy::kNote && !parts_.views.sees_all(caller.uid, sum.uid)) key.reset();
    ports::UsageSum& row = rows[key];
    row.leases += sum.leases;
    row.gpu_ms += sum.gpu_ms;
    row.mib_ms += sum.mib_ms;
  }
  for (const auto& [key, sum] : rows) {
    reply.rows.push_back({key, sum.leases, sum.gpu_ms / 1000, sum.mib_ms / 1000});
  }
  std::stable_sort(reply.rows.begin(), reply.rows.end(),
                   [](const auto& a, const auto& b) { return a.gpu_seconds > b.gpu_seconds; });
  if (reply.rows.size() > kMostRows) reply.rows.resize(kMostRows);
  return replied<proto::Report>(reply);
}

}  // namespace gpurota::daemon
