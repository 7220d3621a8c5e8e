#include "daemon/history/event_log.h"

#include "base/steps.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {

void EventLog::load(std::vector<ports::StoredEvent> events) {
  for (ports::StoredEvent& event : events) {
    last_id_ = std::max(last_id_, event.id);
    by_owner_[event.uid].push_back(event.id);
    events_.emplace(event.id, std::move(event));
  }
  stored_id_ = last_id_;
}

std::vector<std::uint64_t> EventLog::add(ports::StoredEvent event) {
  event.id = ++last_id_;
  by_owner_[event.uid].push_back(event.id);
  events_.emplace(event.id, std::move(event));
  std::vector<std::uint64_t> forgotten;
  while (events_.size() > most_) {
    const auto id = forget_one();
    if (!id) break;
    forgotten.push_back(*id);
  }
  return forgotten;
}

std::optional<std::uint64_t> EventLog::forget_one() {
  const auto most = std::max_element(
      by_owner_.begin(), by_owner_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == by_owner_.end() || most->second.empty()) return std::nullopt;
  const std::uint64_t id = most->second.front();
  most->second.pop_front();
  if (most->second.empty()) by_owner_.erase(most);
  events_.erase(id);
  return id;
}

EventCursor::Batch EventCursor::next(std::size_t most,
                                     const std::function<bool(const ports::StoredEvent&)>& wanted,
                                     std::uint64_t last) {
  Batch batch;
  last = std::min(last, log_.last_id());
  auto it = log_.events().upper_bound(at_);
  std::size_t looked_at = 0;
  for (; it != log_.events().end() && it->first <= last && batch.events.size() < most &&
         looked_at < kMostLookedAt;
       ++it, ++looked_at) {
    steps::add(steps::Kind::kEntries);
    const auto& [id, event] = *it;
    // The events of a gap in the numbers were discarded before this reader came to them.
    const std::uint64_t expected = std::max(at_, from_) + 1;
    if (id > expected) batch.missed += id - expected;
    at_ = id;
    if (wanted(event)) batch.events.push_back(&event);
  }
  if (it == log_.events().end() || it->first > last) {
    const std::uint64_t seen = std::max(at_, from_);
    if (last > seen) batch.missed += last - seen;
    at_ = std::max(at_, last);
  }
  return batch;
}

}  // namespace gpurota::daemon
