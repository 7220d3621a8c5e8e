#include "lease/available.h"

#include "lease/gpu_plan.h"

namespace gpurota::lease {
namespace {

// The most that a request of this kind could have; zero if a context of the driver would fill all
// of it.
Bytes most_of(const GpuPlan& gpu, bool swap,
              std::optional<std::chrono::milliseconds> unbooked_for) {
  Request request;
  request.unbooked_for = unbooked_for;
  request.placement.memory = SizeSpec{Bytes(1), 0};
  request.placement.swap = swap;
  const Bytes most = gpu.most(request, kNever, GpuPlan::Against::kStart);
  return most <= gpu.room().context_cost ? Bytes() : most;
}

bool in_service(const GpuRoom& room) {
  return leasable(room) && room.error.empty() && !room.draining;
}

}  // namespace

std::vector<Available> available(const std::vector<GpuRoom>& rooms,
                                 const std::vector<Occupant>& leases, const Plans& plans,
                                 WallTime now, std::span<const Booked> bookings,
                                 std::optional<std::chrono::milliseconds> unbooked_for) {
  std::vector<Available> available;
  for (const GpuRoom& room : rooms) {
    Available& here = available.emplace_back();
    if (!in_service(room)) continue;
    GpuPlan gpu(room, now);
    for (const Occupant& lease : leases) {
      for (const LeaseGpu& share : lease.gpus) {
        if (share.uuid == room.info.uuid) gpu.add(lease, share);
      }
    }
    gpu.add_turns();
    for (const Booked& booked : bookings) {
      for (const LeaseGpu& share : booked.gpus) {
        if (share.uuid == room.info.uuid) gpu.add(booked, share);
      }
    }
    if (const auto planned = plans.find(room.info.uuid); planned != plans.end()) {
      for (const GpuTimeline::Use& use : planned->second) gpu.add(use);
    }
    here.slice = most_of(gpu, false, unbooked_for);
    if (!room.info.unified) here.turns = most_of(gpu, true, unbooked_for);
  }
  return available;
}

}  // namespace gpurota::lease
