#include "interposer/memory/linear.h"

#include "interposer/account/device.h"
#include "interposer/account/headroom.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/memory/imports.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"

namespace gpurota::interposer {
namespace {

PointerShard& pointer_shard(State& s, uint64_t ptr) {
  return memory_of(s).pointers[mix_key(ptr) >> 32 & (kShards - 1)];
}

// True if this was the first reference. If there is no memory for a block's entry, each reference
// counts as the first, and at most one is credited: too much is charged, never too little.
bool enter_block(State& s, uint64_t block) {
  BlockShard& shard = memory_of(s).blocks[block & (kShards - 1)];
  Lock lock(shard.mutex);
  uint32_t* references = shard.map.put(block);
  return references == nullptr || (*references)++ == 0;
}

// Credits with the lock held: a later allocation in this block charges the block again, so until a
// late credit the block would be charged twice.
bool leave_block(State& s, int slot, uint64_t block) {
  BlockShard& shard = memory_of(s).blocks[block & (kShards - 1)];
  Lock lock(shard.mutex);
  uint32_t* references = shard.map.find(block);
  if (references == nullptr || --*references > 0) return false;
  uint32_t none = 0;
  shard.map.take(block, &none);
  credit_headroom(s, slot, kBlockBytes);
  return true;
}

// Counts the bytes of a range's blocks. A block that the range fills belongs to the range alone.
// The range may share its first and last block with others; `edge` says whether such a block
// counts.
template <typename Edge>
int64_t walk_blocks(uint64_t ptr, uint64_t size, Edge edge) {
  const uint64_t first = ptr / kBlockBytes;
  const uint64_t last = (ptr + size - 1) / kBlockBytes;
  const bool head_shared = ptr % kBlockBytes != 0;
  const bool tail_shared = (ptr + size) % kBlockBytes != 0;
  uint64_t own = last - first + 1;
  uint64_t counted = 0;
  if (head_shared || (tail_shared && first == last)) {
    --own;
    counted += edge(first) ? 1 : 0;
  }
  if (tail_shared && first != last) {
    --own;
    counted += edge(last) ? 1 : 0;
  }
  return static_cast<int64_t>((own + counted) * kBlockBytes);
}

// The address and bytes that the driver's call fills in.
struct Made {
  uint64_t ptr = 0;
  uint64_t size = 0;
};

// Allocates by `call`, which calls the driver, within the lease's limit. `estimate`: bytes, before
// the driver rounds them up. Memory whose blocks turn out to go beyond the limit is freed again,
// and the answer is out of memory.
template <typename Call>
CUresult allocate(uint64_t estimate, Call call) {
  const Place place = current_place();
  Made made;
  if (place.kind == Place::Kind::kNoContext || estimate == 0) return call(&made);
  if (place.kind == Place::Kind::kForeign) {
    GPUROTA_DEBUG(
        "an allocation on a GPU that is not of this lease, or without a daemon, is refused");
    return refuse_elsewhere();
  }
  State& s = state();
  const int64_t most = most_for(estimate);
  Answer answer = reserve(place.slot, most);
  if (answer != Answer::kYes) return refuse(place.slot, estimate, answer);
  const CUresult result = call(&made);
  if (result != CUDA_SUCCESS) {
    put(place.slot, most);
    return result;
  }
  const int64_t cost = enter_blocks(s, made.ptr, made.size);
  if (cost > most) answer = reserve(place.slot, cost - most);
  if (answer != Answer::kYes) {
    const RelaxedCapture relaxed;
    GPUROTA_OWN(cuMemFree_v2)(relaxed, made.ptr);
    // First charge the bytes that could not be reserved, so that all entered blocks are charged.
    // Then leave_blocks() credits the blocks, except a block that another allocation has entered
    // meanwhile: the charge for that block is now the charge of the other allocation.
    put(place.slot, most - cost);
    leave_blocks(s, place.slot, made.ptr, made.size);
    return refuse(place.slot, estimate, answer);
  }
  count(&s.slots[place.slot].allocations);
  remember(s, made.ptr, {made.size, place.context, 0, static_cast<uint8_t>(place.slot), false});
  put(place.slot, cost < most ? most - cost : 0);
  return CUDA_SUCCESS;
}

// True in a swap lease: `out` has memory that moves, or `result` says why not.
template <typename Size, typename Make>
bool made_to_move(Size* out, CUresult* result, Make make) {
  if (!swapping()) return false;
  const Place place = current_place();
  if (place.kind == Place::Kind::kNoContext) return false;
  if (place.kind == Place::Kind::kForeign) return false;
  *result = out == nullptr ? CUDA_ERROR_INVALID_VALUE : make(place);
  return true;
}

// The driver chooses the pitch, and rounds rows up to a multiple of at most this.
constexpr uint64_t kPitchBytes = 512;

uint64_t pitched_estimate(uint64_t width, uint64_t height) {
  uint64_t bytes = 0;
  const uint64_t row = (width + kPitchBytes - 1) & ~(kPitchBytes - 1);
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return UINT64_MAX;
  return bytes;
}

template <typename Ptr, typename Real>
CUresult free_linear(Ptr ptr, Real real) {
  State& s = state();
  CUresult swapped = CUDA_SUCCESS;
  if (swapping() && g_swap.free(s, ptr, &swapped)) return swapped;
  return free_counted(s, ptr, [&] { return real(ptr); });
}

}  // namespace

int64_t enter_blocks(State& s, uint64_t ptr, uint64_t size) {
  return walk_blocks(ptr, size, [&](uint64_t block) { return enter_block(s, block); });
}

void leave_blocks(State& s, int slot, uint64_t ptr, uint64_t size) {
  int64_t shared = 0;
  const int64_t all = walk_blocks(ptr, size, [&](uint64_t block) {
    const bool left = leave_block(s, slot, block);
    shared += left ? kBlockBytes : 0;
    return left;
  });
  put(slot, all - shared);
}

int64_t most_for(uint64_t size) {
  constexpr uint64_t kMost = uint64_t{1} << 62;  // always refused, and sums do not overflow
  if (size > kMost) return static_cast<int64_t>(kMost);
  return static_cast<int64_t>((size + kBlockBytes - 1) & ~(kBlockBytes - 1));
}

void remember(State& s, uint64_t ptr, const Allocation& allocation) {
  PointerShard& shard = pointer_shard(s, ptr);
  Allocation stale{};
  {
    Lock lock(shard.mutex);
    Allocation* entry = shard.map.put(ptr);
    if (entry == nullptr) return;
    stale = *entry;
    *entry = allocation;
    shard.live.store(shard.map.size(), std::memory_order_relaxed);
  }
  if (stale.size != 0) credit(s, ptr, stale);
}

bool find_allocation(State& s, uint64_t ptr, Allocation* out) {
  PointerShard& shard = pointer_shard(s, ptr);
  if (ptr == 0 || shard.live.load(std::memory_order_relaxed) == 0) return false;
  Lock lock(shard.mutex);
  const Allocation* entry = shard.map.find(ptr);
  if (entry != nullptr) *out = *entry;
  return entry != nullptr;
}

// A thread that frees a pointer got the pointer after the pointer's entry was made, and so sees the
// entry.
bool forget(State& s, uint64_t ptr, Allocation* out) {
  PointerShard& shard = pointer_shard(s, ptr);
  if (ptr == 0 || shard.live.load(std::memory_order_relaxed) == 0) return false;  // 0 is not a key
  Lock lock(shard.mutex);
  const bool known = shard.map.take(ptr, out);
  shard.live.store(shard.map.size(), std::memory_order_relaxed);
  return known;
}

void credit(State& s, uint64_t ptr, const Allocation& allocation) {
  if (allocation.moves) return;  // swap_allocate.cpp frees it and tells the daemon
  if (allocation.pool == kArray) {
    put(allocation.slot, static_cast<int64_t>(allocation.size));
  } else if (allocation.pool != 0) {
    credit_pool_allocation(s, allocation);
  } else {
    leave_blocks(s, allocation.slot, ptr, allocation.size);
  }
}

void credit_context(State& s, uint32_t serial) {
  if (serial == 0) return;
  for (PointerShard& shard : memory_of(s).pointers) {
    Lock lock(shard.mutex);
    shard.map.remove_if([&](const Allocation& a) { return a.context == serial; },
                        [&](uint64_t ptr, const Allocation& a) { credit(s, ptr, a); });
    shard.live.store(shard.map.size(), std::memory_order_relaxed);
  }
  shared_ends_in(s, serial);
}

}  // namespace gpurota::interposer

using gpurota::interposer::allocate;
using gpurota::interposer::free_linear;
using gpurota::interposer::g_swap;
using gpurota::interposer::Made;
using gpurota::interposer::made_to_move;
using gpurota::interposer::pitched_estimate;
using gpurota::interposer::Place;

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  GPUROTA_ENTER(cuMemAlloc_v2, out, size);
  CUresult moving = CUDA_SUCCESS;
  const auto make = [=](const Place& place) { return g_swap.allocate(place, size, out); };
  if (made_to_move(out, &moving, make)) return moving;
  return allocate(size, [=](Made* made) {
    const CUresult result = real(out, size);
    if (result == CUDA_SUCCESS) *made = {*out, size};
    return result;
  });
}

CUresult cuMemAlloc(CUdeviceptr_v1* out, unsigned int size) {
  GPUROTA_ENTER(cuMemAlloc, out, size);
  return allocate(size, [=](Made* made) {
    const CUresult result = real(out, size);
    if (result == CUDA_SUCCESS) *made = {*out, size};
    return result;
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  GPUROTA_ENTER(cuMemAllocPitch_v2, out, pitch, width, height, element);
  CUresult moving = CUDA_SUCCESS;
  const auto make = [=](const Place& place) {
    return g_swap.allocate_pitch(place, width, height, element, out, pitch);
  };
  if (made_to_move(out, &moving, make)) return moving;
  return allocate(pitched_estimate(width, height), [=](Made* made) {
    const CUresult result = real(out, pitch, width, height, element);
    if (result == CUDA_SUCCESS) *made = {*out, *pitch * height};
    return result;
  });
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
  GPUROTA_ENTER(cuMemAllocPitch, out, pitch, width, height, element);
  return allocate(pitched_estimate(width, height), [=](Made* made) {
    const CUresult result = real(out, pitch, width, height, element);
    if (result == CUDA_SUCCESS) *made = {*out, uint64_t{*pitch} * height};
    return result;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
  GPUROTA_ENTER(cuMemAllocManaged, out, size, flags);
  return allocate(size, [=](Made* made) {
    const CUresult result = real(out, size, flags);
    if (result == CUDA_SUCCESS) *made = {*out, size};
    return result;
  });
}

CUresult cuMemFree_v2(CUdeviceptr ptr) {
  GPUROTA_ENTER(cuMemFree_v2, ptr);
  return free_linear(ptr, real);
}

CUresult cuMemFree(CUdeviceptr_v1 ptr) {
  GPUROTA_ENTER(cuMemFree, ptr);
  return free_linear(ptr, real);
}
