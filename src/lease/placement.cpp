#include "lease/placement.h"

#include "base/text.h"
#include "core/compute_share.h"
#include "lease/gpu_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gpurota::lease {
namespace {

tl::unexpected<Refusal> refuse(Code code, std::string message, int free = 0, int total = 0) {
  return tl::unexpected<Refusal>(Refusal{Error{code, 0, std::move(message)}, free, total});
}

// Memory that is held without a lease, except by processes that the request takes over.
Bytes foreign_use(const PlacementRequest& request, const GpuRoom& room) {
  if (!request.take_over) return room.unreserved_use;
  const auto own = room.unreserved_by.find(*request.take_over);
  return own == room.unreserved_by.end() ? room.unreserved_use : room.unreserved_use - own->second;
}

// Describes memory in use that no listed process has and that does not count as use without a
// lease.
std::string hidden_text(const GpuRoom& room) {
  if (!room.is_freeing) return to_string(room.hidden) + " in use that no listed process has";
  return fmt::format("memory of an ended program is being freed ({})", to_string(room.hidden));
}

// The most that this request could get now.
Bytes room_left(const PlacementRequest& request, const GpuRoom& room) {
  const Bytes beside_slices = capacity_for(request, room) - room.reserved;
  return beside_slices - (request.swap ? room.swap_wired : room.swap_needed);
}

// Why the request can never have this GPU, however long it waits; nothing: it can.
std::optional<Refusal> impossible_on(const PlacementRequest& request, const GpuRoom& room,
                                     const std::vector<GpuRoom>& rooms) {
  if (!leasable(room)) {
    return refuse(Code::kInvalid,
                  fmt::format("GPU {} is split into MIG instances: name one of them "
                              "(see gpurota status)",
                              name_of(room, rooms)))
        .value();
  }
  if (request.swap && room.info.unified) {
    return refuse(Code::kInvalid,
                  fmt::format("leases cannot take turns on GPU {}: its memory is the machine's, so "
                              "there is nowhere to move theirs to; use --memory instead of --swap",
                              name_of(room, rooms)))
        .value();
  }
  if (request.exclusive()) return std::nullopt;
  if (room.info.unified && room.info.memory.is_zero()) {
    return refuse(Code::kLimit, fmt::format("nobody can say how much memory GPU {} has, so no part "
                                            "of it can be leased: leave out --memory",
                                            name_of(room, rooms)))
        .value();
  }
  const Bytes limit = least_of(request, room);
  const Bytes most = request.swap ? room.swap_capacity : room.capacity;
  if (limit > most) {
    const std::string size = to_string(room.info.memory), available = to_string(most);
    return refuse(Code::kLimit,
                  fmt::format(
                      "{} is more than GPU {} has: {}", to_string(limit), name_of(room, rooms),
                      size == available ? size : available + " of its " + size + " can be leased"))
        .value();
  }
  if (limit <= room.context_cost) {
    return refuse(Code::kLimit,
                  fmt::format("{} is too little on GPU {}: the driver's own context takes {} of it "
                              "before the program allocates anything",
                              to_string(limit), name_of(room, rooms), to_string(room.context_cost)))
        .value();
  }
  return std::nullopt;
}

std::string no_such_gpu(const GpuUuid& uuid) { return "there is no GPU " + uuid.value; }

// Mistakes in the request itself, independent of the machine.
std::optional<Refusal> senseless(const PlacementRequest& request) {
  const auto invalid = [](std::string message) {
    return refuse(Code::kInvalid, std::move(message)).value();
  };
  if (request.gpus.empty() && request.count < 1) return invalid("a lease has at least one GPU");
  for (auto it = request.gpus.begin(); it != request.gpus.end(); ++it) {
    if (std::find(std::next(it), request.gpus.end(), *it) != request.gpus.end()) {
      return invalid("the same GPU is named twice: " + it->value);
    }
  }
  if (!request.gpus.empty() && !request.wishes.any_kind()) {
    return invalid(
        "GPUs that are named have the kind that they have: leave out the kind, or the names");
  }
  const std::size_t count =
      request.gpus.empty() ? static_cast<std::size_t>(request.count) : request.gpus.size();
  if (request.oversize && !(request.swap && request.memory)) {
    return invalid("an oversize lease must be a swap lease with a total amount of memory");
  }
  if (request.soft_limit && !request.memory && !request.swap) {
    return invalid("--soft-limit needs --memory: it lies below the limit");
  }
  if (count > static_cast<std::size_t>(kMaxLeaseGpus)) {
    return invalid(
        fmt::format("a lease has at most {} GPUs, {} were asked for", kMaxLeaseGpus, count));
  }
  return std::nullopt;
}

// The machine will never have enough such GPUs, however long the request waits.
std::optional<Refusal> too_few_of_kind(const PlacementRequest& request,
                                       const std::vector<GpuRoom>& rooms, int total) {
  std::set<std::string> models;
  for (const GpuRoom& room : rooms) {
    if (leasable(room)) models.insert(display_text(room.info.name, 80));
  }
  return refuse(
             Code::kInvalid,
             fmt::format("{} of the kind asked for ({}), this machine has {}: its GPUs are {}",
                         request.count, kind_text(request.wishes), total, fmt::join(models, ", ")))
      .value();
}

std::optional<Refusal> too_few(const PlacementRequest& request, const std::vector<GpuRoom>& rooms,
                               int total) {
  std::string text = fmt::format("{} GPUs asked for, this machine has {}", request.count, total);
  const auto all = std::count_if(rooms.begin(), rooms.end(), leasable);
  if (all > total) {
    text += fmt::format(
        " of one kind, and {} in all with MIG instances: --gpu-ids takes both kinds together", all);
  }
  return refuse(Code::kInvalid, std::move(text)).value();
}

std::optional<Refusal> soft_limit_above(const PlacementRequest& request, const GpuRoom& room) {
  if (!request.soft_limit) return std::nullopt;
  const Bytes soft = request.soft_limit->of(room.info.memory);
  // A swap lease without a limit of its own gets what is available when it is made.
  const Bytes limit = request.memory ? request.memory->of(room.info.memory) : room.swap_capacity;
  if (soft <= limit) return std::nullopt;
  return refuse(Code::kInvalid, fmt::format("the soft limit {} is above the limit {}",
                                            to_string(soft), to_string(limit)))
      .value();
}

}  // namespace

std::string name_of(const GpuRoom& room, const std::vector<GpuRoom>& rooms) {
  const auto parent = std::find_if(rooms.begin(), rooms.end(), [&](const GpuRoom& other) {
    return other.info.uuid == room.info.parent;
  });
  return name_of(room.info, parent == rooms.end() ? nullptr : &parent->info);
}

std::vector<const GpuRoom*> meant(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms) {
  const auto& named = request.gpus;
  std::vector<const GpuRoom*> all, whole, instances;
  // Swap leases avoid GPUs with unified memory if there are other GPUs.
  const bool avoids_unified =
      request.swap && std::any_of(rooms.begin(), rooms.end(), [](const GpuRoom& room) {
        return leasable(room) && !room.info.unified;
      });
  for (const GpuRoom& room : rooms) {
    if (!named.empty()) {
      if (std::find(named.begin(), named.end(), room.info.uuid) != named.end())
        all.push_back(&room);
      continue;
    }
    if (!leasable(room) || !is_of_kind(request.wishes, room.info)) continue;
    if (avoids_unified && room.info.unified) continue;
    all.push_back(&room);
    (room.info.parent.value.empty() ? whole : instances).push_back(&room);
  }
  if (!named.empty() || request.count < 2 || whole.empty() || instances.empty()) return all;
  const auto count = static_cast<std::size_t>(request.count);
  return whole.size() >= count || whole.size() >= instances.size() ? whole : instances;
}

bool leasable(const GpuRoom& room) { return !room.info.mig_enabled; }

Bytes capacity_for(const PlacementRequest& request, const GpuRoom& room) {
  const Bytes capacity = request.swap ? room.swap_capacity : room.capacity;
  return capacity - foreign_use(request, room) - room.hidden - room.above_limits - room.machine_use;
}

Bytes residue_allowance(Bytes capacity) {
  // Enough for five processes on a large GPU (0.5 to 0.7 GiB each on an H100); less on a small GPU.
  return std::min(gib(3), Bytes(capacity.count() / 16));
}

Bytes least_of(const PlacementRequest& request, const GpuRoom& room) {
  const Bytes half(room.swap_capacity.count() / 2);
  if (!request.memory) return half;
  const Bytes memory = request.memory->of(room.info.memory);
  return request.oversize ? std::min(memory, half) : memory;
}

std::string out_of_service(const PlacementRequest& request, const GpuRoom& room) {
  if (!room.error.empty()) return "is in error: " + display_text(room.error, 200);
  if (room.draining) {
    const std::string reason = display_text(room.drain_reason, 200);
    return reason.empty() ? "is draining" : "is draining: " + reason;
  }
  const bool in_use =
      request.threshold ? room.unreserved_use > *request.threshold : room.in_unreserved_use;
  if (!request.exclusive()) return {};
  const bool matters = !request.threshold || room.hidden > *request.threshold;
  if (room.is_freeing && matters) return "is not free yet: " + hidden_text(room);
  if (!in_use) return {};
  // If all use without a lease is the user's own, nobody else is in the way.
  if (request.take_over && foreign_use(request, room).is_zero()) return {};
  return fmt::format("is in use without a lease ({})", to_string(room.unreserved_use));
}

LeaseGpu make_share(const PlacementRequest& request, const GpuRoom& room, Bytes slices) {
  LeaseGpu share{room.info.uuid, std::nullopt, std::nullopt, request.swap, {}};
  share.compute = request.compute;
  if (request.memory) share.limit = request.memory->of(room.info.memory);
  if (request.swap && (!request.memory || request.oversize)) {
    const Bytes beside = std::max(residue_allowance(room.swap_capacity), room.swap_wired);
    const Bytes rest = capacity_for(request, room) - slices - beside;
    const Bytes most = std::max(rest, least_of(request, room));
    if (request.oversize) share.oversize = *share.limit - most;
    share.limit = std::min(share.limit.value_or(most), most);
  }
  if (request.soft_limit) {
    share.soft_limit = request.soft_limit->of(room.info.memory);
    if (!request.memory || request.oversize)
      share.soft_limit = std::min(*share.soft_limit, *share.limit);
  }
  return share;
}

std::optional<Refusal> impossible(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms) {
  if (auto refusal = senseless(request)) return refusal;
  std::optional<Refusal> never;
  int possible = 0;
  int total = 0;
  const bool named = !request.gpus.empty();
  for (const GpuRoom* const each : meant(request, rooms)) {
    const GpuRoom& room = *each;
    ++total;
    auto refusal = impossible_on(request, room, rooms);
    if (!refusal) refusal = soft_limit_above(request, room);
    if (!refusal) ++possible;
    if (refusal && (!never || named)) never = std::move(refusal);
  }
  if (!request.gpus.empty()) {
    if (static_cast<std::size_t>(total) == request.gpus.size()) return never;
    for (const GpuUuid& uuid : request.gpus) {
      const bool there = std::any_of(rooms.begin(), rooms.end(),
                                     [&](const GpuRoom& room) { return room.info.uuid == uuid; });
      if (!there) return refuse(Code::kInvalid, no_such_gpu(uuid)).value();
    }
  }
  if (request.gpus.empty() && request.count > total && !request.wishes.any_kind()) {
    return too_few_of_kind(request, rooms, total);
  }
  if (total > 0 && request.count > total) return too_few(request, rooms, total);
  return request.count > possible ? never : std::nullopt;
}

std::string what_is_there(const PlacementRequest& request, const GpuRoom& room) {
  if (!room.error.empty() || room.draining) return out_of_service(request, room);
  if (room.exclusive) return "is leased to " + room.holders;
  if (request.exclusive()) {
    return room.leases > 0 ? "is shared by " + room.holders : out_of_service(request, room);
  }
  const int compute_left = kMostComputeShare - room.compute_promised;
  if (request.compute.least > compute_left) {
    return fmt::format("has {} % of its compute time left, the rest is promised to {}",
                       compute_left, room.holders);
  }
  std::string text = fmt::format("has {} left{}", to_string(room_left(request, room)),
                                 request.swap ? " for a swap lease" : "");
  if (!room.holders.empty()) text += ", the rest is held by " + room.holders;
  if (!room.unreserved_use.is_zero()) {
    text += fmt::format(", {} in use without a lease", to_string(room.unreserved_use));
  }
  if (!room.machine_use.is_zero()) {
    text += fmt::format(", {} of the machine's memory are used by other programs",
                        to_string(room.machine_use));
  }
  if (!room.hidden.is_zero()) text += ", " + hidden_text(room);
  if (!room.above_limits.is_zero()) {
    text += fmt::format(", {} in use above the limits there", to_string(room.above_limits));
  }
  return text;
}

bool asks_the_same(const PlacementRequest& a, const PlacementRequest& b) {
  PlacementRequest other = b;
  other.preferred = a.preferred;
  return a == other;
}

}  // namespace gpurota::lease
