// A random machine for tests of what is available: slices, leases that take turns, fillers, use
// without a lease, GPUs out of service, and a queue. The machine has developed like a real one:
// every lease was granted when it was requested.
#pragma once

#include "lease/request_queue.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease::testing {

class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : random_(seed) {
    const int gpus = pick(1, 6);
    for (int i = 0; i < gpus; ++i) {
      GpuRoom room;
      room.info.index = i;
      room.info.uuid = GpuUuid{"GPU-" + std::to_string(i)};
      room.info.name = "H100";
      room.info.memory = gib(80);
      room.capacity = room.swap_capacity = chance(20) ? gib(60) : gib(79);
      if (chance(20)) room.unreserved_use = gib(static_cast<std::uint64_t>(pick(1, 30)));
      room.in_unreserved_use = room.unreserved_use > gib(2);
      if (chance(50)) room.context_cost = mib(500);
      room.draining = chance(10);
      rooms.push_back(room);
    }
    for (int i = pick(0, 12); i > 0; --i) settle(random_request());
    for (GpuRoom& room : rooms) {
      if (chance(15)) room.above_limits = gib(1);
      if (room.swap_leases > 0) room.swap_wired = mib(static_cast<std::uint64_t>(pick(0, 3000)));
    }
  }

  Request random_request() {
    Request request;
    request.id = RequestId{++last_};
    request.user = "alice";
    request.kind = chance(10) ? LeaseKind::kFiller : LeaseKind::kRun;
    request.placement.count = chance(70) ? 1 : pick(1, static_cast<int>(rooms.size()));
    if (chance(20)) request.placement.gpus = {rooms[index()].info.uuid};
    if (chance(75)) {
      request.placement.memory = SizeSpec{gib(static_cast<std::uint64_t>(pick(1, 60))), 0};
      request.placement.swap = chance(40) && request.kind != LeaseKind::kFiller;
    }
    if (chance(50)) request.lasts = std::chrono::minutes(pick(2, 600));
    return request;
  }

  QueueView view() const { return {queue, rooms, leases, topology}; }
  QueueDecision decide_with(std::vector<Request> requests) const {
    return decide({requests, rooms, leases, topology}, now);
  }
  // Whether the request at this place starts at once, or as soon as fillers have left.
  bool starts(const std::vector<Request>& requests, std::size_t place) const {
    const QueueDecision decision = decide_with(requests);
    const RequestId id = requests[place].id;
    const auto granted = [id](const Grant& grant) { return grant.request == id; };
    const auto due = [id](const Waiting& each) { return each.request == id && each.way_made; };
    return std::any_of(decision.grants.begin(), decision.grants.end(), granted) ||
           std::any_of(decision.waiting.begin(), decision.waiting.end(), due);
  }

  const WallTime now{std::chrono::hours(100)};
  std::vector<GpuRoom> rooms;
  std::vector<Occupant> leases;
  std::vector<Request> queue;
  Topology topology;

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::size_t index() {
    return static_cast<std::size_t>(pick(0, static_cast<int>(rooms.size()) - 1));
  }

  // The request becomes a lease, or waits.
  void settle(const Request& request) {
    queue.push_back(request);
    const QueueDecision decision = decide(view(), now);
    if (!decision.impossible.empty()) {
      queue.pop_back();
      return;
    }
    for (const Grant& grant : decision.grants) {
      if (grant.request != request.id) continue;
      queue.pop_back();
      add_lease(request, grant.gpus);
    }
  }

  void add_lease(const Request& request, const std::vector<LeaseGpu>& gpus) {
    Occupant lease;
    lease.id = LeaseId{++last_};
    lease.kind = request.kind;
    lease.user = request.user;
    lease.gpus = gpus;
    if (request.lasts) lease.ends = now + *request.lasts;
    leases.push_back(lease);
    if (request.kind == LeaseKind::kFiller) return;
    for (const LeaseGpu& share : gpus) {
      const auto room = std::find_if(rooms.begin(), rooms.end(), [&share](const GpuRoom& each) {
        return each.info.uuid == share.uuid;
      });
      ++room->leases;
      room->exclusive |= !share.limit;
      if (share.swap) {
        ++room->swap_leases;
        room->swap_needed = std::max(room->swap_needed, *share.limit);
      } else {
        room->reserved += share.limit.value_or(room->capacity);
      }
    }
  }

  std::mt19937_64 random_;
  std::uint64_t last_ = 0;
};

}  // namespace gpurota::lease::testing
