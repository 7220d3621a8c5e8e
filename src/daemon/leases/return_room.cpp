#include "daemon/leases/return_room.h"

#include "base/text.h"
#include "daemon/leases/user_allowance.h"
#include "lease/bookings.h"
#include "lease/reason.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {

lease::Request ReturnRoom::request_of(const Lease& lease, const LeaseGpu& share) const {
  const WallTime now = parts_.wall_clock();
  const bool lasts_on = lease.kind == LeaseKind::kReservation &&
                        parts_.config.expired_reservation == config::Expired::kKeep;
  lease::Request request;
  request.kind = lease.kind;
  request.user = parts_.processes.user_name(lease.uid);
  request.owner = lease.uid;
  request.uid = lease.uid;
  request.most_compute =
      most_compute(parts_.queue.limits_of(lease.uid), lease.kind, share.compute.least);
  request.placement.gpus = {share.uuid};
  request.placement.memory = SizeSpec{share.limit.value_or(Bytes()), 0};
  request.placement.swap = share.swap;
  request.placement.compute = share.compute;
  if (lease.ends && !lasts_on) {
    request.lasts = std::max(*lease.ends - now, std::chrono::milliseconds(1));
  }
  return request;
}

std::optional<Reason> ReturnRoom::obstacle_on(const Lease& lease, const LeaseGpu& share,
                                              const GpuRooms::Machine& machine) {
  const std::vector<lease::Request> queue{request_of(lease, share)};
  const lease::Keeping keeping;
  const lease::QueueDecision decision =
      lease::decide(machine.view(queue, keeping), parts_.wall_clock());
  if (!decision.grants.empty()) return std::nullopt;
  if (!decision.impossible.empty()) {
    return lease::cannot_start_reason(decision.impossible.front().second);
  }
  const std::string user = display_text(parts_.processes.user_name(lease.uid), 32);
  parts_.queue.send_away(decision.evict, decision.move_out, [&](LeaseId) {
    return fmt::format("{} ({})", user, to_string(lease.id));
  });
  return lease::waiting_reason(decision.waiting.front());
}

std::optional<Reason> ReturnRoom::find_obstacle(LeaseId id, const std::set<LeaseId>& later) {
  const LeaseEntry* const entry = parts_.tables.find(id);
  if (!entry) return std::nullopt;
  const Lease lease = entry->lease;
  std::set<LeaseId> without = later;
  without.insert(id);
  GpuRooms::Machine machine = parts_.rooms.machine_without(without);
  const lease::Occupant self{.id = id,
                             .user = {},
                             .gpus = {},
                             .ends = {},
                             .uid = lease.uid,
                             .since = lease.since,
                             .leaves_for_bookings = leaves_for_bookings(lease, parts_.config)};
  std::erase_if(machine.bookings,
                [&](const lease::Booked& each) { return lease::leaves_for(self, each); });
  // A drain lets the leases of the GPU continue.
  for (lease::GpuRoom& room : machine.rooms) room.draining = false;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    // The memory of a lease that is parked on a GPU with unified memory counts all the time.
    if (gpu && gpu->info.unified) continue;
    if (gpu && gpu->taken == TimePoint{}) {
      return lease::cannot_start_reason({Code::kNoGpu, 0,
                                         fmt::format("waits until it is known what uses GPU {}",
                                                     parts_.gpus.name_of(share.uuid))});
    }
    if (auto why = obstacle_on(lease, share, machine)) return why;
  }
  return std::nullopt;
}

}  // namespace gpurota::daemon
