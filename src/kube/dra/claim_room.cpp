#include "kube/dra/claim_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

namespace gpurota::kube {
namespace {

// The part of one GPU that all leases of the claim take together.
struct Need {
  int leases = 0;
  bool whole = false;
  Bytes slices;
  Bytes turns;  // of the largest lease: they take turns
  Bytes all() const { return slices + turns; }
};

Need need_of(const std::vector<Claim>& leases, const GpuUuid& gpu) {
  Need need;
  for (const Claim& lease : leases) {
    Bytes memory;
    bool is_there = false;
    for (const ClaimDevice& device : lease.devices) {
      if (device.gpu != gpu) continue;
      is_there = true;
      memory += device.memory;
    }
    if (!is_there) continue;
    ++need.leases;
    if (lease.resource == Resource::kGpu) need.whole = true;
    if (lease.resource == Resource::kMemory) need.slices += memory;
    // A lease that may be larger than the GPU uses what is available.
    if (lease.resource == Resource::kTurn && !lease.terms.oversize) {
      need.turns = std::max(need.turns, memory);
    }
  }
  return need;
}

// The error of the first GPU for which `wrong` returns a text.
Result<void> check_each(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus,
                        Code code,
                        const std::function<std::string(const NodeGpu&, const Need&)>& wrong) {
  for (const NodeGpu& gpu : gpus) {
    const Need need = need_of(leases, gpu.uuid);
    const std::string said = need.leases > 0 ? wrong(gpu, need) : std::string();
    if (!said.empty()) return fail(code, said);
  }
  return {};
}

}  // namespace

Result<void> check_together(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus) {
  if (leases.size() < 2) return {};
  constexpr const char* kRemedy =
      "delete the pod, so that it is scheduled again, or ask for them by a claim each";
  return check_each(
      leases, gpus, Code::kInvalid, [&](const NodeGpu& gpu, const Need& need) -> std::string {
        if (need.whole && need.leases > 1) {
          return fmt::format(
              "the scheduler has given GPU {} to {} requests of this claim, of "
              "which one is for all of it: {}",
              gpu.label, need.leases, kRemedy);
        }
        if (need.whole || gpu.memory.is_zero() || need.all() <= gpu.memory) return {};
        return fmt::format(
            "the scheduler has given {} of GPU {} to the requests of this claim, which has {}: {}",
            to_string(need.all()), gpu.label, to_string(gpu.memory), kRemedy);
      });
}

Result<void> check_room(const std::vector<Claim>& leases, const std::vector<NodeGpu>& gpus) {
  return check_each(
      leases, gpus, Code::kUnavailable, [](const NodeGpu& gpu, const Need& need) -> std::string {
        if (!gpu.works || !gpu.in_service) {
          return fmt::format("GPU {} of this claim is drained or lost", gpu.label);
        }
        if (need.whole) {
          return gpu.idle ? ""
                          : fmt::format("GPU {}, which this claim has whole, is in use", gpu.label);
        }
        const Bytes free = need.turns.is_zero() ? gpu.free : gpu.free_for_turns;
        if (need.all() <= free) return {};
        return fmt::format("this claim needs {} of GPU {}, which has {} left",
                           to_string(need.all()), gpu.label, to_string(free));
      });
}

}  // namespace gpurota::kube
