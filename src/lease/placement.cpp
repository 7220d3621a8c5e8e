#include "lease/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::lease {
namespace {

using Chosen = tl::expected<std::vector<LeaseGpu>, Refusal>;

tl::unexpected<Refusal> refuse(Code code, std::string message, int free = 0, int total = 0) {
  return tl::unexpected<Refusal>(Refusal{Error{code, 0, std::move(message)}, free, total});
}

bool leasable(const GpuRoom& room) { return !room.info.mig_enabled; }

Bytes room_left(const GpuRoom& room) { return room.capacity - room.reserved - room.unreserved_use; }

// Why this GPU cannot be had now by this request; empty if it can.
std::string obstacle(const PlacementRequest& request, const GpuRoom& room) {
  if (!room.error.empty()) return "is in error: " + room.error;
  if (room.exclusive) return "is leased to " + room.holders;
  if (!request.memory) {
    if (room.leases > 0) return "is shared by " + room.holders;
    if (room.in_unreserved_use) {
      return fmt::format("is in use without a lease ({})", to_string(room.unreserved_use));
    }
    return {};
  }
  const Bytes limit = request.memory->of(room.info.memory);
  if (limit <= room_left(room)) return {};
  std::string text = fmt::format("has {} left", to_string(room_left(room)));
  if (!room.holders.empty()) text += ", the rest is held by " + room.holders;
  if (!room.unreserved_use.is_zero()) {
    text += fmt::format(", {} in use without a lease", to_string(room.unreserved_use));
  }
  return text;
}

// What no amount of waiting would change.
std::optional<Refusal> impossible(const PlacementRequest& request, const GpuRoom& room) {
  if (!leasable(room)) {
    return refuse(Code::kInvalid,
                  fmt::format("GPU {} is split into MIG instances: name one of them "
                              "(see gpurota status)",
                              room.info.index))
        .value();
  }
  if (!request.memory) return std::nullopt;
  const Bytes limit = request.memory->of(room.info.memory);
  if (limit > room.capacity) {
    return refuse(Code::kLimit, fmt::format("{} is more than GPU {} has: {} can be had of its {}",
                                            to_string(limit), room.info.index,
                                            to_string(room.capacity), to_string(room.info.memory)))
        .value();
  }
  if (limit <= room.context_cost) {
    return refuse(Code::kLimit,
                  fmt::format("{} is too little on GPU {}: the driver's own context takes {} of it "
                              "before the program allocates anything",
                              to_string(limit), room.info.index, to_string(room.context_cost)))
        .value();
  }
  return std::nullopt;
}

LeaseGpu make_share(const PlacementRequest& request, const GpuRoom& room) {
  LeaseGpu share{room.info.uuid, std::nullopt, std::nullopt};
  if (request.memory) share.limit = request.memory->of(room.info.memory);
  if (request.soft_limit) share.soft_limit = request.soft_limit->of(room.info.memory);
  return share;
}

Chosen place_named(const PlacementRequest& request, const std::vector<GpuRoom>& rooms) {
  std::vector<LeaseGpu> chosen;
  std::string obstacles;
  int free = 0;
  for (const GpuUuid& uuid : request.gpus) {
    const auto room = std::find_if(rooms.begin(), rooms.end(),
                                   [&](const GpuRoom& r) { return r.info.uuid == uuid; });
    if (room == rooms.end()) return refuse(Code::kInvalid, "there is no GPU " + uuid.value);
    if (auto refusal = impossible(request, *room)) return tl::unexpected(std::move(*refusal));
    if (std::string why = obstacle(request, *room); !why.empty()) {
      obstacles += fmt::format("{}GPU {} {}", obstacles.empty() ? "" : "; ", room->info.index, why);
    } else {
      ++free;
    }
    chosen.push_back(make_share(request, *room));
  }
  if (!obstacles.empty()) {
    return refuse(Code::kNoGpu, obstacles, free, static_cast<int>(request.gpus.size()));
  }
  return chosen;
}

// Slices: least room left over first. Whole GPUs: longest idle first. Ties: by index.
bool better(const PlacementRequest& request, const GpuRoom& a, const GpuRoom& b) {
  if (request.memory) {
    if (room_left(a) != room_left(b)) return room_left(a) < room_left(b);
  } else if (a.idle_since != b.idle_since) {
    return a.idle_since < b.idle_since;
  }
  return a.info.index < b.info.index;
}

std::string describe_shortage(const PlacementRequest& request, int free, int total,
                              const std::string& obstacles) {
  std::string text = fmt::format("{} of {} GPU{} free", free, total, total == 1 ? "" : "s");
  if (request.memory) {
    const std::string size = request.memory->percent ? fmt::format("{}%", request.memory->percent)
                                                     : to_string(request.memory->bytes);
    text = fmt::format("{} of {} GPU{} ha{} {} left", free, total, total == 1 ? "" : "s",
                       free == 1 ? "s" : "ve", size);
  }
  return fmt::format("{}, {} asked for: {}", text, request.count, obstacles);
}

Chosen place_any(const PlacementRequest& request, const std::vector<GpuRoom>& rooms) {
  std::vector<const GpuRoom*> candidates;
  std::string obstacles;
  std::optional<Refusal> never;
  int possible = 0;
  int total = 0;
  for (const GpuRoom& room : rooms) {
    if (!leasable(room)) continue;
    ++total;
    if (auto refusal = impossible(request, room)) {
      never = std::move(refusal);
      continue;
    }
    ++possible;
    if (std::string why = obstacle(request, room); !why.empty()) {
      obstacles += fmt::format("{}GPU {} {}", obstacles.empty() ? "" : "; ", room.info.index, why);
    } else {
      candidates.push_back(&room);
    }
  }
  if (total == 0) return refuse(Code::kNoGpu, "this machine has no GPU that can be leased");
  if (request.count > total) {
    return refuse(Code::kInvalid,
                  fmt::format("{} GPUs asked for, this machine has {}", request.count, total));
  }
  if (request.count > possible && never) return tl::unexpected(std::move(*never));
  const int free = static_cast<int>(candidates.size());
  if (free < request.count) {
    return refuse(Code::kNoGpu, describe_shortage(request, free, total, obstacles), free, total);
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](const GpuRoom* a, const GpuRoom* b) { return better(request, *a, *b); });
  candidates.resize(static_cast<std::size_t>(request.count));
  // The program sees them in PCI order, as on a machine that has just these.
  std::sort(candidates.begin(), candidates.end(),
            [](const GpuRoom* a, const GpuRoom* b) { return a->info.index < b->info.index; });
  std::vector<LeaseGpu> chosen;
  for (const GpuRoom* room : candidates) chosen.push_back(make_share(request, *room));
  return chosen;
}

}  // namespace

Chosen place(const PlacementRequest& request, const std::vector<GpuRoom>& rooms) {
  if (request.gpus.empty() && request.count < 1) {
    return refuse(Code::kInvalid, "a lease has at least one GPU");
  }
  for (auto it = request.gpus.begin(); it != request.gpus.end(); ++it) {
    if (std::find(std::next(it), request.gpus.end(), *it) != request.gpus.end()) {
      return refuse(Code::kInvalid, "the same GPU is named twice: " + it->value);
    }
  }
  if (request.soft_limit && !request.memory) {
    return refuse(Code::kInvalid, "--soft-limit needs --memory: it lies below the limit");
  }
  Chosen chosen = request.gpus.empty() ? place_any(request, rooms) : place_named(request, rooms);
  if (!chosen) return chosen;
  if (chosen->size() > static_cast<std::size_t>(kMaxLeaseGpus)) {
    return refuse(Code::kInvalid, fmt::format("a lease has at most {} GPUs, {} were asked for",
                                              kMaxLeaseGpus, chosen->size()));
  }
  for (const LeaseGpu& share : *chosen) {
    if (share.soft_limit && *share.soft_limit > *share.limit) {
      return refuse(Code::kInvalid,
                    fmt::format("the soft limit {} is above the limit {}",
                                to_string(*share.soft_limit), to_string(*share.limit)));
    }
  }
  return chosen;
}

}  // namespace gpurota::lease
