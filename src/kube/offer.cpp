#include "kube/offer.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpurota::kube {
namespace {

// The most ids of a GPU, whatever the unit: kubelet gets all of them at each change.
constexpr std::uint64_t kMostUnits = 1024;

// The part of one GPU that containers have.
struct OnGpu {
  std::set<int> numbers;           // of this resource
  std::uint64_t coming_units = 0;  // of memory, not yet counted by the daemon
  bool coming_whole = false;
  bool others = false;  // of other resources
};

OnGpu on_gpu(Resource resource, const GpuUuid& gpu, const std::vector<Taken>& taken) {
  OnGpu found;
  for (const Taken& each : taken) {
    if (each.device.gpu != gpu) continue;
    if (each.resource == resource) {
      found.numbers.insert(each.device.number);
    } else {
      found.others = true;
    }
    if (each.leased) continue;
    if (each.resource == Resource::kMemory) ++found.coming_units;
    if (each.resource == Resource::kGpu) found.coming_whole = true;
  }
  return found;
}

std::uint64_t units_of(Bytes amount, Bytes unit) {
  return unit.is_zero() ? 0 : amount.count() / unit.count();
}

// How many free devices can be had now.
std::uint64_t room(Resource resource, const NodeGpu& gpu, const OnGpu& there, const Rules& rules) {
  if (!gpu.works || !gpu.in_service || there.coming_whole) return 0;
  switch (resource) {
    case Resource::kGpu:
      return gpu.idle && !there.others ? 1 : 0;
    case Resource::kMemory: {
      const std::uint64_t units = units_of(gpu.free, rules.unit);
      return units - std::min(units, there.coming_units);
    }
    case Resource::kTurn:
      return gpu.free_for_turns >= rules.turn_memory.value_or(rules.unit) ? UINT64_MAX : 0;
  }
  return 0;
}

std::uint64_t total(Resource resource, const NodeGpu& gpu, std::size_t gpus, const Rules& rules,
                    Bytes host_memory) {
  switch (resource) {
    case Resource::kGpu:
      return 1;
    case Resource::kMemory:
      return std::min(units_of(gpu.memory, rules.unit), kMostUnits);
    case Resource::kTurn:
      return static_cast<std::uint64_t>(turns_of(gpu, gpus, rules, host_memory));
  }
  return 0;
}

}  // namespace

void keep_lost(std::vector<NodeGpu>& now, const std::vector<NodeGpu>& before) {
  for (NodeGpu gpu : before) {
    const bool there = std::any_of(now.begin(), now.end(),
                                   [&](const NodeGpu& each) { return each.uuid == gpu.uuid; });
    if (there) continue;
    gpu.works = false;
    now.push_back(std::move(gpu));
  }
}

int turns_of(const NodeGpu& gpu, std::size_t gpus, const Rules& rules, Bytes host_memory) {
  const Bytes each = rules.turn_memory.value_or(gpu.memory);
  if (!gpu.takes_turns || each.is_zero() || gpus == 0) return 0;
  const std::uint64_t out = host_memory.count() / gpus / each.count();
  return static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(rules.turns), out + 1));
}

std::vector<Offered> offer(Resource resource, const std::vector<NodeGpu>& gpus,
                           const std::vector<Taken>& taken, const Rules& rules, Bytes host_memory) {
  std::vector<Offered> offered;
  for (const NodeGpu& gpu : gpus) {
    const OnGpu there = on_gpu(resource, gpu.uuid, taken);
    std::uint64_t left = room(resource, gpu, there, rules);
    const auto add = [&](int number, bool healthy) {
      offered.push_back({device_id(resource, {gpu.uuid, number}), healthy, gpu.place.numa});
    };
    const auto count = static_cast<int>(total(resource, gpu, gpus.size(), rules, host_memory));
    for (int number = 0; number < count; ++number) {
      const bool had = there.numbers.contains(number);
      add(number, had ? gpu.works : left > 0);
      if (!had && left > 0) --left;
    }
    // A container keeps its devices after a change of the rules.
    for (const int number : there.numbers) {
      if (number >= count) add(number, gpu.works);
    }
  }
  return offered;
}

}  // namespace gpurota::kube
