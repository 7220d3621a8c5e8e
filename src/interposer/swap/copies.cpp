// The mover's copies: directly between GPU and pinned host memory, or through bounce buffers if
// host memory is pageable. Threads copy between bounce buffers and pageable memory while the bus is
// busy with other blocks.
#include "interposer/swap/mover.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr uint32_t kUnitsPerBuffer = BounceBuffers::kBytes / kUnitBytes;

bool is_stale(const Block& block, uint32_t unit) { return (block.stale >> unit & 1) != 0; }

// A copy from host memory to host memory by several threads: one thread copies some 5 to 10 GiB/s,
// a fraction of the bus's rate.
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

// Units of a block that are copied together: consecutive in host memory and, if they are pageable,
// in one bounce buffer.
struct Run {
  HostExtent host;
  uint64_t offset;  // in the block
  uint64_t bytes;
  bool pinned;
  uint32_t bounced;  // units of the block that come before this run in the bounce buffers
};

// Calls `each` for each run of the block, until `each` returns false.
template <typename Each>
bool for_each_run(HostMemory& host, const Block& block, bool stale_only, Each each) {
  uint32_t before = 0;
  uint32_t bounced = 0;
  for (uint32_t i = 0; i < block.host.count; ++i) {
    const HostExtent& extent = block.host.extents[i];
    const bool pinned = host.pinned(extent);
    for (uint32_t unit = 0; unit < extent.count;) {
      const uint32_t buffer_left = kUnitsPerBuffer - bounced % kUnitsPerBuffer;
      const uint32_t left = extent.count - unit;
      const uint32_t most = pinned || left < buffer_left ? left : buffer_left;
      uint32_t count = 0;
      while (count < most && (!stale_only || is_stale(block, before + unit + count))) ++count;
      if (count == 0) {
        ++unit;
        continue;
      }
      const Run run = {
          {extent.region, static_cast<uint16_t>(extent.first + unit), static_cast<uint16_t>(count)},
          (before + unit) * kUnitBytes,
          count * kUnitBytes,
          pinned,
          bounced};
      if (!each(run)) return false;
      if (!pinned) bounced += count;
      unit += count;
    }
    before += extent.count;
  }
  return true;
}

char* bounce_address(const BounceBuffers& bounce, const Block& block, const Run& run) {
  return bounce.memory(block.bounce, run.bounced / kUnitsPerBuffer) +
         run.bounced % kUnitsPerBuffer * kUnitBytes;
}

}  // namespace

Mover::Step Mover::take_bounce(Block& block, bool stale_only) {
  uint32_t units = 0;
  for_each_run(space_.host_, block, stale_only, [&](const Run& run) {
    if (!run.pinned) units += run.host.count;
    return true;
  });
  if (units == 0) return Step::kDone;
  const uint32_t buffers = (units + kUnitsPerBuffer - 1) / kUnitsPerBuffer;
  if (space_.bounce_.take(calls_, space_.host_, buffers, &block.bounce, &last_)) {
    return Step::kDone;
  }
  return last_ == CUDA_SUCCESS ? Step::kLater : Step::kFailed;
}

bool Mover::copy_out(Block& block) {
  const bool begun = for_each_run(space_.host_, block, true, [&](const Run& run) {
    char* to =
        run.pinned ? space_.host_.address(run.host) : bounce_address(space_.bounce_, block, run);
    last_ = calls_.copy_out(calls_.self, to, block.address + run.offset, run.bytes);
    return last_ == CUDA_SUCCESS;
  });
  if (!begun) return false;
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

// Copies from bounce buffers to host memory, after the copies that copy_out() began are done.
void Mover::empty_bounce(const Block& block) {
  if (block.bounce == 0) return;
  for_each_run(space_.host_, block, true, [&](const Run& run) {
    if (run.pinned) return true;
    copy_together(space_.copiers_, space_.host_.address(run.host),
                  bounce_address(space_.bounce_, block, run), run.bytes);
    return true;
  });
}

bool Mover::copy_in(Block& block) {
  const bool begun = for_each_run(space_.host_, block, false, [&](const Run& run) {
    char* from = space_.host_.address(run.host);
    if (!run.pinned) {
      char* bounce = bounce_address(space_.bounce_, block, run);
      copy_together(space_.copiers_, bounce, from, run.bytes);
      from = bounce;
    }
    last_ = calls_.copy_in(calls_.self, block.address + run.offset, from, run.bytes);
    return last_ == CUDA_SUCCESS;
  });
  if (!begun) return false;
  last_ = calls_.fence(calls_.self, &block.token);
  return last_ == CUDA_SUCCESS;
}

}  // namespace gpurota::interposer
