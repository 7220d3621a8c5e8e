// The mover's copies: straight between GPU and pinned host memory, or through a small pinned ring.
#include "interposer/swap/mover.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

bool is_stale(const Block& block, uint32_t unit) { return (block.stale >> unit & 1) != 0; }

}  // namespace

// Memory that is not pinned is reached through a piece that is.
// A copy from or to it that failed half way may still be under way: it must not meet the next one.
bool Mover::have_ring() {
  if (space_.ring_ != nullptr && space_.ring_lost_pin_) {
    calls_.unpin(calls_.self, space_.ring_);
    calls_.pin(calls_.self, space_.ring_, kUnitBytes);  // else it only takes longer
    space_.ring_lost_pin_ = false;
  }
  if (space_.ring_ != nullptr)
    return !space_.ring_in_use_ || wait_for_copies(calls_) == CUDA_SUCCESS;
  void* ring = calls_.map_host(calls_.self, kUnitBytes, true);
  if (ring == nullptr) return false;
  if (!calls_.pin(calls_.self, ring, kUnitBytes)) {
    calls_.unmap_host(calls_.self, ring, kUnitBytes);
    return false;
  }
  space_.ring_ = ring;
  return true;
}

bool Mover::stage_out(const HostExtent& extent, uint64_t address, uint64_t size) {
  char* to = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  for (uint64_t done = 0; done < size; done += kUnitBytes) {
    const uint64_t part = size - done < kUnitBytes ? size - done : kUnitBytes;
    space_.ring_in_use_ = true;
    last_ = calls_.copy_out(calls_.self, space_.ring_, address + done, part);
    if (last_ == CUDA_SUCCESS) last_ = wait_for_copies(calls_);
    if (last_ != CUDA_SUCCESS) return false;
    space_.ring_in_use_ = false;
    memcpy(to + done, space_.ring_, part);
  }
  return true;
}

bool Mover::stage_in(const HostExtent& extent, uint64_t address, uint64_t size) {
  const char* from = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  for (uint64_t done = 0; done < size; done += kUnitBytes) {
    const uint64_t part = size - done < kUnitBytes ? size - done : kUnitBytes;
    memcpy(space_.ring_, from + done, part);
    space_.ring_in_use_ = true;
    last_ = calls_.copy_in(calls_.self, address + done, space_.ring_, part);
    if (last_ == CUDA_SUCCESS) last_ = wait_for_copies(calls_);
    if (last_ != CUDA_SUCCESS) return false;
    space_.ring_in_use_ = false;
  }
  return true;
}

// Runs of units that are to be copied.
bool Mover::copy_out(Block& block) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < block.host.count; ++i) {
    const HostExtent& extent = block.host.extents[i];
    for (uint32_t unit = 0; unit < extent.count;) {
      uint32_t run = 0;
      while (unit + run < extent.count && is_stale(block, done + unit + run)) ++run;
      if (run == 0) {
        ++unit;
        continue;
      }
      const HostExtent part = {extent.region, static_cast<uint16_t>(extent.first + unit),
                               static_cast<uint16_t>(run)};
      const uint64_t from = block.address + (done + unit) * kUnitBytes;
      if (space_.host_.pinned(part)) {
        last_ = calls_.copy_out(calls_.self, space_.host_.address(part), from, run * kUnitBytes);
        if (last_ != CUDA_SUCCESS) return false;
      } else if (!stage_out(part, from, run * kUnitBytes)) {
        return false;
      }
      unit += run;
    }
    done += extent.count;
  }
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

bool Mover::copy_in(Block& block) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < block.host.count; ++i) {
    const HostExtent& extent = block.host.extents[i];
    const uint64_t bytes = extent.count * kUnitBytes;
    if (space_.host_.pinned(extent)) {
      last_ =
          calls_.copy_in(calls_.self, block.address + offset, space_.host_.address(extent), bytes);
      if (last_ != CUDA_SUCCESS) return false;
    } else if (!stage_in(extent, block.address + offset, bytes)) {
      return false;
    }
    offset += bytes;
  }
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

}  // namespace gpurota::interposer
