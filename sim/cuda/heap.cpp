#include "sim/cuda/heap.h"

namespace gpurota::sim {
namespace {

constexpr std::size_t kAlignment = 512;
constexpr std::size_t kLargest = kDevicePage / 2;  // the largest piece that shares a slab

}  // namespace

bool DeviceHeap::take(Slab& slab, std::size_t bytes, Piece& piece) {
  for (auto hole = slab.free.begin(); hole != slab.free.end(); ++hole) {
    const auto [offset, size] = *hole;
    if (size < bytes) continue;
    slab.free.erase(hole);
    if (size > bytes) slab.free[offset + bytes] = size - bytes;
    slab.used += bytes;
    piece = {slab.mapping, offset};
    return true;
  }
  return false;
}

DeviceHeap::Piece DeviceHeap::allocate(Machine& machine, int device, std::size_t bytes) {
  Piece piece;
  const bool is_small = bytes <= kLargest;
  const std::size_t size = round_up(bytes, is_small ? kAlignment : kDevicePage);
  if (size < bytes) return piece;
  if (is_small) {
    for (auto& [mapping, slab] : slabs_) {
      if (take(slab, size, piece)) return piece;
    }
  }
  auto memory =
      Physical::create(machine, device, is_small ? kDevicePage : size, Physical::Sharing::kPrivate);
  if (!memory) return piece;
  auto mapping = Mapping::create(std::move(memory), kDevicePage);
  if (!mapping || !is_small) return {std::move(mapping), 0};
  Slab& slab = slabs_[mapping.get()];
  slab.mapping = std::move(mapping);
  slab.free[0] = kDevicePage;
  take(slab, size, piece);
  return piece;
}

void DeviceHeap::release(const std::shared_ptr<Mapping>& mapping, std::size_t offset,
                         std::size_t bytes) {
  const auto found = slabs_.find(mapping.get());
  if (found == slabs_.end()) return;
  Slab& slab = found->second;
  const std::size_t size = round_up(bytes, kAlignment);
  slab.used -= size;
  if (slab.used == 0) {
    slabs_.erase(found);
    return;
  }
  // Another process may have the piece open: do not reuse it.
  if (mapping->memory().is_shared()) return;
  auto hole = slab.free.emplace(offset, size).first;
  const auto next = std::next(hole);
  if (next != slab.free.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    slab.free.erase(next);
  }
  if (hole == slab.free.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second == hole->first) {
    before->second += hole->second;
    slab.free.erase(hole);
  }
}

}  // namespace gpurota::sim
