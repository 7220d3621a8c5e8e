#include "interposer/pools.h"

#include "interposer/debug.h"
#include "interposer/device.h"
#include "interposer/driver.h"
#include "interposer/gated.h"
#include "interposer/ledger.h"
#include "interposer/linear.h"
#include "interposer/pool_charge.h"
#include "interposer/swap/memory.h"
#include "interposer/swap/streams.h"

namespace gpurota::interposer {
namespace {

// The pool that cuMemAllocAsync takes from where `place` is.
Pool* current_pool(State& s, const Place& place) {
  CUmemoryPool handle = s.slots[place.slot].current_pool.load(std::memory_order_relaxed);
  if (handle == nullptr) {
    const auto get = GPUROTA_REAL(cuDeviceGetMemPool);
    CUdevice device = -1;
    for (CUdevice d = 0; d < static_cast<CUdevice>(kDevices) && device < 0; ++d) {
      if (s.device_slot[d].load(std::memory_order_relaxed) == place.slot + 1) device = d;
    }
    if (get == nullptr || device < 0 || get(&handle, device) != CUDA_SUCCESS) return nullptr;
    s.slots[place.slot].current_pool.store(handle, std::memory_order_relaxed);
  }
  bool foreign = false;  // the place is not
  return known_pool(s, handle, &foreign);
}

constexpr int64_t kSmallGrowth = int64_t{32} << 20;
constexpr uintptr_t kLastDefaultStream = 2;  // CU_STREAM_PER_THREAD

constexpr int kLeaveMs = 1000;
const CUmemoryPool kGone = reinterpret_cast<CUmemoryPool>(UINTPTR_MAX);

// By another thread, at this moment: no program that is right allocates from it any more, and the driver would.
bool is_being_destroyed(State& s, CUmemoryPool handle) {
  const uint32_t used = s.pools.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const Pool& p = s.pools.entries[i];
    if (p.destroyed.load() && handle != nullptr && p.pool.load() == handle) return true;
  }
  return false;
}

CUmemoryPool current(const Place& place) { return state().slots[place.slot].current_pool.load(); }

// What they take must be known before it is decided whether the pool has anything left.
void wait_for_those_inside(const Pool& pool) {
  ErrnoGuard guard;
  for (int i = 0; i < kLeaveMs && pool.inside.load() > 0; ++i) sleep_ms(1);
}

// One allocation on its way.
struct Request {
  Pool* pool;
  CUmemoryPool handle;
  CUdeviceptr* out;
  uint64_t size;
  CUstream stream;
  bool per_thread;
  bool idle;  // there was nothing to do in the stream: it can be waited for
};

void free_again(const Request& request) {
  const auto free_async =
      request.per_thread ? GPUROTA_REAL(cuMemFreeAsync_ptsz) : GPUROTA_REAL(cuMemFreeAsync);
  if (free_async != nullptr) free_async(*request.out, request.stream);
  const auto wait = request.per_thread ? GPUROTA_REAL(cuStreamSynchronize_ptsz)
                                       : GPUROTA_REAL(cuStreamSynchronize);
  const RelaxedCapture relaxed;
  if (request.idle && wait != nullptr) wait(request.stream);
}

template <typename Call>
CUresult attempt(State& s, const Request& request, int64_t taken, Flight* flight, Call call) {
  Pool& pool = *request.pool;
  CUresult result = CUDA_SUCCESS;
  bool covered = false;
  {
    const Inside inside(pool);
    // Its charge goes with the pool, and this memory would be nobody's.
    if (pool.destroyed.load() || pool.pool.load() != request.handle) {
      put(pool.slot, taken);
      return CUDA_ERROR_INVALID_VALUE;
    }
    result = call();
    covered = settle(s, pool, taken, flight);
  }
  if (result != CUDA_SUCCESS) return result;
  if (!covered) {
    free_again(request);
    was_in_pieces(pool, request.size);
    reclaim_pools(pool.slot);
    return refuse(pool.slot, request.size);
  }
  count(&s.slots[pool.slot].allocations);
  if (pool.tracked) {
    pool.live.fetch_add(static_cast<int64_t>(request.size));
    const auto index = static_cast<uint16_t>(&pool - s.pools.entries + 1);
    remember(s, *request.out, {request.size, 0, index, static_cast<uint8_t>(pool.slot)});
  }
  return CUDA_SUCCESS;
}

// Lets the pool go of what is wholly free, and takes that for its growth: then it may grow.
bool regain(State& s, Pool& pool, int64_t growth) {
  trim(pool);
  settle_pools(pool.slot);
  if (!take(s, pool.slot, growth)) return false;
  return true;
}

// Default streams are never asked: the question could end a capture that depends on them.
bool is_idle(const Request& request) {
  if (reinterpret_cast<uintptr_t>(request.stream) <= kLastDefaultStream) return false;
  const RelaxedCapture relaxed;
  const auto query =
      request.per_thread ? GPUROTA_REAL(cuStreamQuery_ptsz) : GPUROTA_REAL(cuStreamQuery);
  return query != nullptr && query(request.stream) == CUDA_SUCCESS;
}

// The headroom is short of what the pool could grow by. In a pool at its limit most allocations are
// served from what it has, which only the driver knows; so if it has enough, the driver is asked. Not for
// a large request in an idle stream: what the pool still has after it was trimmed is then in pieces.
// A small one is asked for at once, as trimming would map and unmap the same memory again and again.
template <typename Call>
CUresult attempt_when_short(State& s, Request request, int64_t growth, Flight* flight, Call call) {
  Pool& pool = *request.pool;
  request.idle = is_idle(request);
  const int slot = pool.slot;
  const bool small = growth <= kSmallGrowth;
  if (!lease_may_have(s, slot, growth) && may_serve(pool, request.size)) {
    if (!small && regain(s, pool, growth)) return attempt(s, request, growth, flight, call);
    if (small || !request.idle) {
      const CUresult result = attempt(s, request, 0, flight, call);
      if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    }
  }
  if (!reserve(slot, growth, flight)) {
    if (!may_serve(pool, request.size) || (!small && request.idle)) {
      return refuse(slot, request.size);
    }
    return attempt(s, request, 0, flight, call);
  }
  return attempt(s, request, growth, flight, call);
}

template <typename Call>
CUresult allocate_from(const Request& request, Call call) {
  State& s = state();
  const int slot = request.pool->slot;
  const int64_t growth = growth_for(s, *request.pool, request.size);
  Flight flight(s.slots[slot]);
  if (!take(s, slot, growth)) return attempt_when_short(s, request, growth, &flight, call);
  return attempt(s, request, growth, &flight, call);
}

// What is allocated while a stream captures becomes a node of its graph (graph_memory.cpp). Asked before
// anything else: other questions about a capturing stream could end the capture.
template <typename Real>
CUresult allocate_async(CUdeviceptr* out, uint64_t size, CUstream stream, bool per_thread,
                        Real real) {
  const auto call = [=] {
    return gated(GateClass::kSubmits, stream, per_thread, [=] { return real(out, size, stream); });
  };
  if (is_capturing(stream, per_thread)) return call();
  const Place place = place_of_stream(stream, per_thread);
  if (place.kind == Place::Kind::kNoContext || size == 0) return call();
  if (place.kind == Place::Kind::kForeign) return CUDA_ERROR_OUT_OF_MEMORY;
  Pool* pool = current_pool(state(), place);
  for (int i = 0; i < kLeaveMs && pool == nullptr && is_being_destroyed(state(), current(place));
       ++i) {
    ErrnoGuard guard;
    sleep_ms(1);  // another will be the current one then
    pool = current_pool(state(), place);
  }
  if (swapping() && (pool == nullptr || !pool->stays)) {
    return swap_allocate_async(place, size, stream, per_thread, out);
  }
  if (pool == nullptr) return call();
  return allocate_from({pool, pool->pool.load(), out, size, stream, per_thread, false}, call);
}

template <typename Real>
CUresult allocate_from_pool(CUdeviceptr* out, uint64_t size, CUmemoryPool handle, CUstream stream,
                            bool per_thread, Real real) {
  const auto call = [=] {
    return gated(GateClass::kSubmits, stream, per_thread,
                 [=] { return real(out, size, handle, stream); });
  };
  if (is_capturing(stream, per_thread)) return call();
  bool foreign = false;
  Pool* pool = handle != nullptr && size != 0 ? known_pool(state(), handle, &foreign) : nullptr;
  if (foreign) {
    GPUROTA_DEBUG("memory from the pool of a GPU that is not of this lease is refused");
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (pool == nullptr && is_being_destroyed(state(), handle)) return CUDA_ERROR_INVALID_VALUE;
  if (pool == nullptr) return call();  // host memory, imported, or an error to be
  if (swapping() && !pool->stays) {
    const Place here = current_place();
    const Place place{Place::Kind::kSlot, pool->slot, here.slot == pool->slot ? here.context : 0};
    return swap_allocate_async(place, size, stream, per_thread, out);
  }
  return allocate_from({pool, handle, out, size, stream, per_thread, false}, call);
}

// Linear memory may be freed this way too, and tracked pools want to know.
template <typename Real>
CUresult free_async(CUdeviceptr ptr, CUstream stream, bool per_thread, Real driver) {
  State& s = state();
  CUresult swapped = CUDA_SUCCESS;
  if (swapping() && swap_free_async(s, ptr, stream, per_thread, &swapped)) return swapped;
  return free_counted(s, ptr, [&] {
    return gated(GateClass::kSubmits, stream, per_thread, [=] { return driver(ptr, stream); });
  });
}

void forget_current_pools(State& s) {
  for (Slot& slot : s.slots) slot.current_pool.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

void credit_pool_allocation(State& s, const Allocation& allocation) {
  Pool& pool = s.pools.entries[allocation.pool - 1];
  const auto size = static_cast<int64_t>(allocation.size);
  const int64_t left = pool.live.fetch_sub(size) - size;
  if (left == 0 && pool.destroyed) remove_pool(pool);
}

}  // namespace gpurota::interposer

namespace interposer = gpurota::interposer;

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream) {
  GPUROTA_ENTER(cuMemAllocAsync, out, size, stream);
  return interposer::allocate_async(out, size, stream, false, real);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream) {
  GPUROTA_ENTER(cuMemAllocAsync_ptsz, out, size, stream);
  return interposer::allocate_async(out, size, stream, true, real);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                 CUstream stream) {
  GPUROTA_ENTER(cuMemAllocFromPoolAsync, out, size, pool, stream);
  return interposer::allocate_from_pool(out, size, pool, stream, false, real);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                      CUstream stream) {
  GPUROTA_ENTER(cuMemAllocFromPoolAsync_ptsz, out, size, pool, stream);
  return interposer::allocate_from_pool(out, size, pool, stream, true, real);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream) {
  GPUROTA_ENTER(cuMemFreeAsync, ptr, stream);
  return interposer::free_async(ptr, stream, false, real);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream) {
  GPUROTA_ENTER(cuMemFreeAsync_ptsz, ptr, stream);
  return interposer::free_async(ptr, stream, true, real);
}

// One that could not be counted is not made: a stream of the lease's GPU may allocate from the pool of any.
CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  GPUROTA_ENTER(cuMemPoolCreate, out, props);
  const CUresult result = real(out, props);
  if (result != CUDA_SUCCESS || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return result;
  const int slot = interposer::slot_of_device(props->location.id);
  interposer::Pool* pool =
      slot >= 0 ? interposer::add_pool(interposer::state(), *out, slot, true) : nullptr;
  if (pool != nullptr) {
    pool->stays = props->handleTypes != 0 || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED;
    return result;
  }
  GPUROTA_DEBUG("a memory pool on device %d is refused: %s", props->location.id,
                slot < 0 ? "the GPU is not of this lease" : "the program has too many");
  const auto destroy = GPUROTA_REAL(cuMemPoolDestroy);
  if (destroy != nullptr) destroy(*out);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// The driver keeps a destroyed pool's memory until its last allocation is freed; so do we.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  GPUROTA_ENTER(cuMemPoolDestroy, pool);
  interposer::State& s = interposer::state();
  interposer::Pool* known = interposer::find_pool(s, pool);
  if (known != nullptr) {
    interposer::settle_pools(known->slot);
    known->destroyed = true;
    interposer::wait_for_those_inside(*known);
  }
  const CUresult result = real(pool);
  if (known == nullptr) return result;
  if (result != CUDA_SUCCESS) {
    known->destroyed = false;
    return result;
  }
  interposer::forget_current_pools(s);
  known->pool.store(interposer::kGone);  // the driver may give the handle to another
  if (known->live.load() == 0) interposer::remove_pool(*known);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  GPUROTA_ENTER(cuMemPoolTrimTo, pool, keep);
  const CUresult result = real(pool, keep);
  const interposer::Pool* known = interposer::find_pool(interposer::state(), pool);
  if (known != nullptr) interposer::settle_pools(known->slot);
  return result;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  GPUROTA_ENTER(cuDeviceSetMemPool, device, pool);
  const CUresult result = real(device, pool);
  interposer::forget_current_pools(interposer::state());
  return result;
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  GPUROTA_ENTER(cuMemSetMemPool, location, type, pool);
  const CUresult result = real(location, type, pool);
  interposer::forget_current_pools(interposer::state());
  return result;
}
