// The mover's copies: straight between GPU and pinned host memory, or through a small pinned ring.
#include "interposer/swap/mover.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr uint64_t kHalfBytes = 2 * kUnitBytes;
constexpr uint64_t kRingBytes = 2 * kHalfBytes;

bool is_stale(const Block& block, uint32_t unit) { return (block.stale >> unit & 1) != 0; }

// One thread copies some 5 to 10 GiB/s, a fraction of what the bus does.
struct Copy {
  static constexpr uint64_t kPart = uint64_t{512} << 10;
  char* to;
  const char* from;
  uint64_t size;
  static void part(void* self, uint32_t part) {
    const Copy& copy = *static_cast<Copy*>(self);
    const uint64_t at = part * kPart;
    const uint64_t rest = copy.size - at;
    memcpy(copy.to + at, copy.from + at, rest < kPart ? rest : kPart);
  }
};

void copy_together(ThreadPool& pool, char* to, const char* from, uint64_t size) {
  Copy copy{to, from, size};
  pool.divide(static_cast<uint32_t>((size + Copy::kPart - 1) / Copy::kPart), Copy::part, &copy);
}

}  // namespace

// A copy from or to the ring that failed half way may still be under way: it must not meet the next
// one.
bool Mover::have_ring() {
  if (space_.ring_ != nullptr && space_.ring_lost_pin_) {
    calls_.unpin(calls_.self, space_.ring_);
    calls_.pin(calls_.self, space_.ring_, kRingBytes);  // else it only takes longer
  }
  space_.ring_lost_pin_ = false;
  if (space_.ring_ != nullptr) {
    if (space_.ring_in_doubt_ && wait_for_copies(calls_) != CUDA_SUCCESS) return false;
    space_.ring_in_doubt_ = false;
    return true;
  }
  void* ring = calls_.map_host(calls_.self, kRingBytes, true);
  if (ring == nullptr) return false;
  if (!calls_.pin(calls_.self, ring, kRingBytes)) {
    calls_.unmap_host(calls_.self, ring, kRingBytes);
    return false;
  }
  space_.ring_ = static_cast<char*>(ring);
  return true;
}

bool Mover::wait_for_half(uint32_t half) {
  uint64_t& copy = space_.ring_copies_[half];
  if (copy == 0) return true;
  last_ = calls_.wait(calls_.self, copy);
  copy = 0;
  if (last_ != CUDA_SUCCESS) space_.ring_in_doubt_ = true;
  return last_ == CUDA_SUCCESS;
}

char* Mover::next_half(uint32_t* half) {
  *half = space_.ring_next_;
  space_.ring_next_ ^= 1;
  return wait_for_half(*half) ? space_.ring_ + *half * kHalfBytes : nullptr;
}

// One half is filled by the GPU while the other is emptied by threads.
bool Mover::stage_out(const HostExtent& extent, uint64_t address, uint64_t size) {
  char* to = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  const char* before = nullptr;
  uint32_t half_before = 0;
  for (uint64_t at = 0; at < size + kHalfBytes; at += kHalfBytes) {
    char* piece = nullptr;
    uint32_t half = 0;
    if (at < size) {
      piece = next_half(&half);
      if (piece == nullptr) return false;
      const uint64_t part = size - at < kHalfBytes ? size - at : kHalfBytes;
      if (!begin_staged(half, calls_.copy_out(calls_.self, piece, address + at, part))) {
        return false;
      }
    }
    if (before != nullptr) {
      if (!wait_for_half(half_before)) return false;
      const uint64_t done = at - kHalfBytes;
      const uint64_t part = size - done < kHalfBytes ? size - done : kHalfBytes;
      copy_together(space_.copiers_, to + done, before, part);
    }
    before = piece;
    half_before = half;
  }
  return true;
}

// One half is filled by threads while the GPU reads the other. The last copies are still under way
// at the end: the fence after the block waits for them, too.
bool Mover::stage_in(const HostExtent& extent, uint64_t address, uint64_t size) {
  const char* from = space_.host_.address(extent);
  if (!have_ring()) {
    last_ = CUDA_ERROR_OUT_OF_MEMORY;
    return false;
  }
  for (uint64_t at = 0; at < size; at += kHalfBytes) {
    uint32_t half = 0;
    char* piece = next_half(&half);
    if (piece == nullptr) return false;
    const uint64_t part = size - at < kHalfBytes ? size - at : kHalfBytes;
    copy_together(space_.copiers_, piece, from + at, part);
    if (!begin_staged(half, calls_.copy_in(calls_.self, address + at, piece, part))) return false;
  }
  return true;
}

// `begun`: what the driver said of a copy from or to this half.
bool Mover::begin_staged(uint32_t half, CUresult begun) {
  last_ = begun;
  if (last_ == CUDA_SUCCESS) last_ = calls_.fence(calls_.self, &space_.ring_copies_[half]);
  if (last_ == CUDA_SUCCESS) return true;
  space_.ring_copies_[half] = 0;
  space_.ring_in_doubt_ = true;
  return false;
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
