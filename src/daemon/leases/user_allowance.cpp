#include "daemon/leases/user_allowance.h"

#include "core/compute_share.h"
#include "daemon/leases/lease_entry.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

Bytes size_of(const GpuTable& gpus, const GpuUuid& uuid) {
  const GpuEntry* gpu = gpus.find(uuid);
  return gpu ? gpu->info.memory : Bytes();
}

// A slice counts as its fraction of the GPU's memory, as in the report.
double part_of(Bytes share, Bytes gpu) {
  if (gpu.is_zero()) return 1;
  return std::min(1.0, static_cast<double>(share.count()) / static_cast<double>(gpu.count()));
}

// A MIG instance counts as its fraction of a GPU. A GPU in MIG mode counts as nothing, because its
// instances are leased instead.
double weight_of(const GpuTable& gpus, const GpuInfo& info) {
  if (info.mig_enabled) return 0;
  const GpuEntry* const parent = gpus.find(info.parent);
  return parent ? part_of(info.memory, parent->info.memory) : 1;
}

double booked_part(const GpuTable& gpus, const GpuInfo& info,
                   const std::optional<SizeSpec>& memory) {
  const Bytes share = memory ? memory->of(info.memory) : info.memory;
  return part_of(share, info.memory) * weight_of(gpus, info);
}

Bytes largest(const GpuTable& gpus) {
  Bytes most;
  for (const GpuEntry& gpu : gpus.entries()) most = std::max(most, gpu.info.memory);
  return most;
}

}  // namespace

lease::Holding holding_of(uid_t uid, const std::map<LeaseId, LeaseEntry>& entries,
                          const GpuTable& gpus, WallTime now, WallTime from, bool fillers) {
  lease::Holding held;
  for (const auto& [id, entry] : entries) {
    if (entry.lease.uid != uid) continue;
    if (entry.lease.kind == LeaseKind::kFiller && !fillers) continue;
    held.gpus += static_cast<int>(entry.lease.gpus.size());
    for (const LeaseGpu& share : entry.lease.gpus) {
      held.memory += share.limit.value_or(size_of(gpus, share.uuid));
    }
    // The use is not negative even if the clock was set back.
    const auto so_far = std::max(now - std::max(entry.lease.since, from), WallTime::duration(0));
    const double parts = parts_of(entry.lease, gpus);
    held.gpu_time += gpu_time_of(so_far, parts);
    if (entry.lease.ends && !entry.cause) {
      const auto left = std::max(*entry.lease.ends - now, WallTime::duration(0));
      held.promised += gpu_time_of(left, parts);
    }
  }
  return held;
}

double parts_of(const Lease& lease, const GpuTable& gpus) {
  double parts = 0;
  for (const LeaseGpu& share : lease.gpus) {
    const Bytes size = size_of(gpus, share.uuid);
    parts += part_of(share.limit.value_or(size), size);
  }
  return parts;
}

double booked_parts(const std::vector<GpuUuid>& kept, const std::optional<SizeSpec>& memory,
                    const GpuTable& gpus) {
  double parts = 0;
  for (const GpuUuid& uuid : kept) {
    const GpuEntry* const gpu = gpus.find(uuid);
    parts += gpu ? booked_part(gpus, gpu->info, memory) : 1;
  }
  return parts;
}

double booked_parts(const lease::PlacementRequest& request, const GpuTable& gpus) {
  if (!request.gpus.empty()) return booked_parts(request.gpus, request.memory, gpus);
  const GpuInfo* most = nullptr;
  for (const GpuEntry& gpu : gpus.entries()) {
    if (!most || weight_of(gpus, gpu.info) * static_cast<double>(gpu.info.memory.count()) >
                     weight_of(gpus, *most) * static_cast<double>(most->memory.count())) {
      most = &gpu.info;
    }
  }
  const int count = std::clamp(request.count, 0, kMaxLeaseGpus);
  return most ? count * booked_part(gpus, *most, request.memory) : 0;
}

double machine_parts(const GpuTable& gpus) {
  double parts = 0;
  for (const GpuEntry& gpu : gpus.entries()) parts += weight_of(gpus, gpu.info);
  return parts;
}

std::chrono::seconds gpu_time_of(WallTime::duration time, double parts) {
  const auto seconds = std::chrono::duration<double>(time).count() * parts;
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

lease::Asking asking_of(const lease::PlacementRequest& request, const GpuTable& gpus) {
  lease::Asking asked;
  std::vector<Bytes> sizes;
  for (const GpuUuid& uuid : request.gpus) sizes.push_back(size_of(gpus, uuid));
  if (request.gpus.empty()) {
    // No machine has more GPUs: a larger request is refused for that reason, and not because of a
    // limit.
    const auto count = std::clamp(request.count, 0, kMaxLeaseGpus);
    sizes.assign(static_cast<std::size_t>(count), largest(gpus));
  }
  asked.gpus = static_cast<int>(sizes.size());
  asked.parts = 0;
  for (const Bytes size : sizes) {
    Bytes share = request.memory ? request.memory->of(size) : size;
    if (request.oversize) share = std::min(share, size);  // the rest is host memory
    asked.memory += share;
    *asked.parts += part_of(share, size);
  }
  return asked;
}

int most_compute(const UserLimits& limits, LeaseKind kind, int own) {
  if (kind == LeaseKind::kPod) return kMostComputeShare;
  return std::max(limits.compute.value_or(kMostComputeShare), own);
}

}  // namespace gpurota::daemon
