#include "cli/hosts/choose.h"

#include "core/gpu_wishes.h"

#include <algorithm>
#include <cstdint>

namespace gpurota::cli {
namespace {

bool is_wished_kind(const LeaseWishes& wishes, const proto::Gpu& gpu) {
  if (wishes.gpu_type && !is_of_type(*wishes.gpu_type, gpu.name)) return false;
  if (wishes.min_memory && gpu.memory_bytes < *wishes.min_memory) return false;
  if (!wishes.gpu_class) return true;
  const auto& classes = gpu.classes;
  return classes &&
         std::find(classes->begin(), classes->end(), *wishes.gpu_class) != classes->end();
}

bool is_in_service(const proto::Gpu& gpu) {
  return gpu.state != proto::GpuState::kSplit && gpu.state != proto::GpuState::kError &&
         gpu.state != proto::GpuState::kDraining && gpu.state != proto::GpuState::kUnknown;
}

bool has_room_now(const LeaseWishes& wishes, const proto::Gpu& gpu) {
  const bool is_whole = !wishes.memory && !wishes.swap;
  if (is_whole) return gpu.state == proto::GpuState::kAvailable;
  const Bytes wanted =
      wishes.memory && !wishes.oversize ? wishes.memory->of(gpu.memory_bytes) : Bytes(1);
  const auto& room = wishes.swap ? gpu.swap_available_bytes : gpu.available_bytes;
  return room && *room >= wanted;
}

bool could_have_room(const LeaseWishes& wishes, const proto::Gpu& gpu) {
  return !wishes.memory || wishes.oversize ||
         wishes.memory->of(gpu.memory_bytes) <= gpu.memory_bytes;
}

}  // namespace

Room room_for(const LeaseWishes& wishes, const proto::Status::Reply& status) {
  Room room;
  for (const proto::Gpu& gpu : status.gpus) {
    if (!is_wished_kind(wishes, gpu) || !is_in_service(gpu)) continue;
    if (could_have_room(wishes, gpu)) ++room.ever;
    if (has_room_now(wishes, gpu)) ++room.now;
  }
  return room;
}

std::optional<std::string> choose_host(const LeaseWishes& wishes,
                                       const std::vector<OfHost<proto::Status>>& hosts) {
  const int wanted = wishes.gpus.value_or(1);
  const OfHost<proto::Status>* shortest = nullptr;
  for (const OfHost<proto::Status>& each : hosts) {
    const Room room = room_for(wishes, *each.reply);
    if (room.now >= wanted) return each.host;
    if (room.ever < wanted) continue;
    const std::uint64_t waiting = each.reply->waiting.value_or(0);
    if (!shortest || waiting < shortest->reply->waiting.value_or(0)) shortest = &each;
  }
  if (!shortest) return std::nullopt;
  return shortest->host;
}

}  // namespace gpurota::cli
