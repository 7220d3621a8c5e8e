// A history in memory, for tests: a copy is the state that a daemon killed now would leave. One
// thread.
#pragma once

#include "ports/history.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace gpurota::testing {

class FakeHistory final : public ports::History {
 public:
  Result<void> save(const ports::HistoryBatch& batch) override {
    if (full) return fail(Code::kInternal, "the disk is full");
    events.insert(events.end(), batch.events.begin(), batch.events.end());
    for (const ports::StoredUsage& each : batch.usage) usage[{each.lease, each.gpu}] = each;
    for (const ports::StoredPastBooking& each : batch.bookings) bookings[each.id] = each;
    for (const RequestId id : batch.forgotten_bookings) bookings.erase(id);
    return {};
  }
  Result<std::vector<ports::StoredEvent>> load_events() override { return events; }
  Result<std::vector<ports::StoredUsage>> load_open_usage() override {
    std::vector<ports::StoredUsage> open;
    for (const auto& [key, each] : usage) {
      if (each.open) open.push_back(each);
    }
    return open;
  }
  Result<std::vector<ports::StoredPastBooking>> load_past_bookings() override {
    std::vector<ports::StoredPastBooking> all;
    for (const auto& [id, each] : bookings) all.push_back(each);
    return all;
  }
  Result<std::vector<ports::StoredUsage>> read_usage(LeaseId, std::size_t) override {
    return std::vector<ports::StoredUsage>();
  }
  Result<std::vector<ports::UsageSum>> sum_usage_of(uid_t, WallTime, WallTime) override {
    return std::vector<ports::UsageSum>();
  }
  Result<std::size_t> count_usage(uid_t uid) override {
    return static_cast<std::size_t>(std::count_if(
        usage.begin(), usage.end(), [&](const auto& row) { return row.second.uid == uid; }));
  }
  Result<ports::MergedUsage> merge_usage(const ports::UsageMerge&) override {
    return ports::MergedUsage{{}, true, 0};
  }
  Result<bool> prune_usage(WallTime, std::size_t) override { return false; }

  std::vector<ports::StoredEvent> events;
  std::map<std::pair<LeaseId, GpuUuid>, ports::StoredUsage> usage;
  std::map<RequestId, ports::StoredPastBooking> bookings;
  bool full = false;
};

}  // namespace gpurota::testing
