// Stream-ordered allocation: pools are charged by what they have *reserved*.
//
// A pool keeps freed memory, grows in units of its own and shrinks at synchronisation points, so
// the bytes of single allocations say little about how much memory the GPU loses. Before each
// allocation that could grow the pool, the most by which the pool can grow is taken from the
// headroom. Afterwards the pool's reserved bytes are read. docs/design/interposer.md says how far a
// pool can be ahead of its charge, and when.
#include "interposer/account/device.h"
#include "interposer/account/swap_table.h"
#include "interposer/driver/driver.h"
#include "interposer/driver/own_calls.h"
#include "interposer/gate/gated.h"
#include "interposer/memory/linear.h"
#include "interposer/memory/pool_charge.h"
#include "interposer/memory/pool_figures.h"
#include "interposer/memory/pool_settlement.h"
#include "interposer/memory/reserve.h"
#include "interposer/os/debug.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// The pool that cuMemAllocAsync takes from. `ends`: another thread is destroying this pool, and
// another pool will become the current one.
Pool* current_pool(State& s, int slot, CUmemoryPool* out, bool* ends) {
  std::atomic<CUmemoryPool>& known = s.slots[slot].current_pool;
  CUmemoryPool handle = known.load(std::memory_order_relaxed);
  *ends = false;
  if (handle == nullptr) {
    const uint32_t turn = memory_of(s).pools.turn.load();
    CUdevice device = -1;
    for (CUdevice d = 0; d < static_cast<CUdevice>(kDevices) && device < 0; ++d) {
      if (s.device_slot[d].load(std::memory_order_relaxed) == slot + 1) device = d;
    }
    if (device < 0 || GPUROTA_OWN(cuDeviceGetMemPool)(&handle, device) != CUDA_SUCCESS)
      return nullptr;
    Lock lock(memory_of(s).pools.mutex);
    if (memory_of(s).pools.turn.load() == turn) known.store(handle, std::memory_order_relaxed);
  }
  *out = handle;
  bool foreign = false;  // stays false: the slot is of the lease
  return known_pool(s, handle, &foreign, ends);
}

constexpr int64_t kSmallGrowth = int64_t{32} << 20;

constexpr int kPatienceMs = 1000;

// nullptr means that no pool is the current one. If another pool may have become the current one
// during the search, this searches again, at most kPatienceMs times.
Pool* settled_current_pool(State& s, int slot, CUmemoryPool* handle, bool* ends) {
  for (int i = 0;; ++i) {
    const uint32_t turn = memory_of(s).pools.turn.load();
    Pool* pool = current_pool(s, slot, handle, ends);
    if (pool != nullptr || i == kPatienceMs) return pool;
    if (!*ends && memory_of(s).pools.turn.load() == turn) return nullptr;
    ErrnoGuard guard;
    if (*ends) sleep_ms(1);
  }
}

// One allocation under way.
struct Request {
  Pool* pool;
  CUmemoryPool handle;
  int slot;
  CUdeviceptr* out;
  uint64_t size;
  CUstream stream;
  bool per_thread;
  bool* gone;         // whether the pool was destroyed before anything was taken from it
  bool idle = false;  // the stream had no work: it can be waited for
};

void free_again(const Request& request) {
  const RelaxedCapture relaxed;
  const Outside outside = Outside::unless_captured(request.stream, request.per_thread);
  if (request.per_thread) {
    GPUROTA_OWN(cuMemFreeAsync_ptsz)(relaxed, outside, *request.out, request.stream);
    if (request.idle) GPUROTA_OWN(cuStreamSynchronize_ptsz)(relaxed, outside, request.stream);
  } else {
    GPUROTA_OWN(cuMemFreeAsync)(relaxed, outside, *request.out, request.stream);
    if (request.idle) GPUROTA_OWN(cuStreamSynchronize)(relaxed, outside, request.stream);
  }
}

// Allocates and records the memory while the pool cannot end; otherwise the memory might belong to
// no pool.
template <typename Call>
CUresult attempt_inside(State& s, const Request& request, int64_t taken, Flight* flight,
                        bool* covered, const Call& call) {
  Pool& pool = *request.pool;
  const Inside inside(pool);
  if (pool.destroyed.load() || pool.pool.load() != request.handle) {
    put(request.slot, taken);
    *request.gone = true;
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = call(flight);
  *covered = settle(s, pool, taken, flight);
  if (result != CUDA_SUCCESS || !*covered || !pool.tracked) return result;
  pool.live.fetch_add(static_cast<int64_t>(request.size));
  const auto index = static_cast<uint16_t>(&pool - memory_of(s).pools.entries + 1);
  remember(s, *request.out, {request.size, 0, index, static_cast<uint8_t>(request.slot), false});
  return result;
}

template <typename Call>
CUresult attempt(State& s, const Request& request, int64_t taken, Flight* flight,
                 const Call& call) {
  bool covered = false;
  const CUresult result = attempt_inside(s, request, taken, flight, &covered, call);
  remove_if_gone(*request.pool);
  if (result != CUDA_SUCCESS) return result;
  if (!covered) {
    free_again(request);
    was_in_pieces(*request.pool, request.size);
    reclaim_pools(request.slot);
    return refuse(request.slot, request.size, Answer::kNo);
  }
  count(&s.slots[request.slot].allocations);
  return CUDA_SUCCESS;
}

// Makes the pool release what is wholly free, and takes the bytes of its growth from the headroom.
// True: the pool may grow.
bool regain(State& s, Pool& pool, int slot, int64_t growth) {
  trim(pool);
  settle_pools(slot);
  return take(s, slot, growth);
}

// Default streams are never queried: many others may have work there.
bool is_idle(const Request& request) {
  if (reinterpret_cast<uintptr_t>(request.stream) <= kLastDefaultStream) return false;
  const RelaxedCapture relaxed;
  const Outside outside = Outside::unless_captured(request.stream, request.per_thread);
  return (request.per_thread
              ? GPUROTA_OWN(cuStreamQuery_ptsz)(relaxed, outside, request.stream)
              : GPUROTA_OWN(cuStreamQuery)(relaxed, outside, request.stream)) == CUDA_SUCCESS;
}

// The headroom is less than the pool could grow by. A pool at its limit serves most allocations
// from its free memory. If the pool has enough free memory, the driver is called, because only the
// driver knows whether that memory can serve the request. A large request in an idle stream is an
// exception: free memory that the pool still has after a trim is then fragmented. A small request
// is tried without a trim, which would unmap and map the same memory repeatedly.
template <typename Call>
CUresult attempt_when_short(State& s, Request request, int64_t growth, Flight* flight,
                            const Call& call) {
  Pool& pool = *request.pool;
  request.idle = is_idle(request);
  const int slot = request.slot;
  const bool small = growth <= kSmallGrowth;
  if (!lease_may_have(s, slot, growth) && may_serve(pool, request.size)) {
    if (!small && regain(s, pool, slot, growth)) return attempt(s, request, growth, flight, call);
    if (small || !request.idle) {
      const CUresult result = attempt(s, request, 0, flight, call);
      if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
    }
  }
  const Answer answer = reserve(slot, growth, flight);
  if (answer != Answer::kYes) {
    if (!may_serve(pool, request.size) || (!small && request.idle)) {
      return refuse(slot, request.size, answer);
    }
    return attempt(s, request, 0, flight, call);
  }
  return attempt(s, request, growth, flight, call);
}

template <typename Call>
CUresult allocate_from(const Request& request, const Call& call) {
  State& s = state();
  const int64_t growth = growth_for(s, *request.pool, request.size);
  Flight flight(s.slots[request.slot]);
  if (!take(s, request.slot, growth)) return attempt_when_short(s, request, growth, &flight, call);
  return attempt(s, request, growth, &flight, call);
}

// `pool` nullptr: no known pool.
CUresult allocate_moving(const Place& place, uint64_t size, CUstream stream, bool per_thread,
                         Pool* pool, CUmemoryPool handle, CUdeviceptr* out) {
  State& s = state();
  const uint16_t number = pool != nullptr ? begin_giving(s, *pool, handle, size) : uint16_t{0};
  const CUresult result = g_swap.allocate_async(place, size, stream, per_thread, number, out);
  if (result != CUDA_SUCCESS) note_ended(s, number, size);
  return result;
}

// An allocation while a stream captures becomes a node of its graph (graph_memory.cpp). Whether the
// stream captures is asked before anything else: other questions about it could end the capture.
template <typename Real>
CUresult allocate_async(CUdeviceptr* out, uint64_t size, CUstream stream, bool per_thread,
                        Real real) {
  const auto call = [=](Flight* flight = nullptr) {
    return gated(
        GateClass::kSubmits, stream, per_thread, [=] { return real(out, size, stream); }, flight);
  };
  if (is_capturing(stream, per_thread)) return call();
  const Place place = place_of_stream(stream, per_thread);
  if (place.kind == Place::Kind::kNoContext || size == 0) return call();
  if (place.kind == Place::Kind::kForeign) return refuse_elsewhere();
  for (int i = 0;; ++i) {
    CUmemoryPool handle = nullptr;
    bool ends = false;
    Pool* pool = settled_current_pool(state(), place.slot, &handle, &ends);
    if (swapping() && (pool == nullptr || !pool->stays)) {
      return allocate_moving(place, size, stream, per_thread, pool, handle, out);
    }
    if (ends) return CUDA_ERROR_INVALID_VALUE;
    if (pool == nullptr) return call();
    bool gone = false;
    const CUresult result =
        allocate_from({pool, handle, place.slot, out, size, stream, per_thread, &gone}, call);
    if (!gone || i == kPatienceMs) return result;  // otherwise, tries the new current pool
  }
}

template <typename Real>
CUresult allocate_from_pool(CUdeviceptr* out, uint64_t size, CUmemoryPool handle, CUstream stream,
                            bool per_thread, Real real) {
  const auto call = [=](Flight* flight = nullptr) {
    return gated(
        GateClass::kSubmits, stream, per_thread, [=] { return real(out, size, handle, stream); },
        flight);
  };
  if (is_capturing(stream, per_thread)) return call();
  bool foreign = false;
  bool ends = false;  // a correct program does not allocate from a pool that ends
  Pool* pool =
      handle != nullptr && size != 0 ? known_pool(state(), handle, &foreign, &ends) : nullptr;
  if (foreign) {
    GPUROTA_DEBUG("memory from the pool of a GPU that is not of this lease is refused");
    return refuse_elsewhere();
  }
  if (ends) return CUDA_ERROR_INVALID_VALUE;
  if (pool == nullptr) return call();  // host memory, imported, or the driver's error
  if (swapping() && !pool->stays) {
    const Place here = current_place();
    const Place place{Place::Kind::kSlot, pool->slot, here.slot == pool->slot ? here.context : 0};
    return allocate_moving(place, size, stream, per_thread, pool, handle, out);
  }
  bool gone = false;
  return allocate_from({pool, handle, pool->slot, out, size, stream, per_thread, &gone}, call);
}

// Linear memory may be freed this way too, and frees to tracked pools must be counted.
template <typename Real>
CUresult free_async(CUdeviceptr ptr, CUstream stream, bool per_thread, Real driver) {
  State& s = state();
  CUresult swapped = CUDA_SUCCESS;
  if (swapping() && g_swap.free_async(s, ptr, stream, per_thread, &swapped)) return swapped;
  return free_counted(s, ptr, [&] {
    return gated(GateClass::kSubmits, stream, per_thread, [=] { return driver(ptr, stream); });
  });
}

void forget_current_pools(State& s) {
  Lock lock(memory_of(s).pools.mutex);
  memory_of(s).pools.turn.fetch_add(1);
  for (Slot& slot : s.slots) slot.current_pool.store(nullptr, std::memory_order_relaxed);
}

}  // namespace

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

// Refuses a pool that cannot be counted, even if it is on a GPU outside the lease: a stream on the
// lease's GPU could allocate from it.
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
  const interposer::RelaxedCapture relaxed;
  GPUROTA_OWN(cuMemPoolDestroy)(relaxed, *out);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// A destroyed pool stays charged until its last allocation is freed, because the driver keeps the
// pool's memory until then.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  GPUROTA_ENTER(cuMemPoolDestroy, pool);
  interposer::State& s = interposer::state();
  interposer::Pool* known = interposer::find_pool(s, pool);
  if (known != nullptr) {
    interposer::settle_pools(known->slot);
    interposer::begin_destroying(*known);
  }
  const CUresult result = real(pool);
  if (known == nullptr) return result;
  if (result != CUDA_SUCCESS) {
    known->destroyed.store(false);
    return result;
  }
  interposer::forget_current_pools(s);
  known->pool.store(interposer::kGone);  // the driver may give the handle to another pool
  interposer::remove_if_gone(*known);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  GPUROTA_ENTER(cuMemPoolTrimTo, pool, keep);
  const CUresult result = real(pool, keep);
  const interposer::Pool* known = interposer::find_pool(interposer::state(), pool);
  if (known != nullptr) interposer::settle_pools(known->slot);
  if (interposer::swapping()) interposer::g_swap.end_freed_if_idle(interposer::state());
  return result;
}

// The driver's figures lack memory that moves, so they are replaced.
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  GPUROTA_ENTER(cuMemPoolGetAttribute, pool, attribute, value);
  const CUresult result = real(pool, attribute, value);
  uint64_t bytes = 0;
  if (result == CUDA_SUCCESS && interposer::swapping() &&
      interposer::read_moving_pool(interposer::state(), pool, attribute, &bytes)) {
    memcpy(value, &bytes, sizeof(bytes));
  }
  return result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  GPUROTA_ENTER(cuMemPoolSetAttribute, pool, attribute, value);
  const CUresult result = real(pool, attribute, value);
  if (result == CUDA_SUCCESS && interposer::swapping()) {
    interposer::reset_moving_pool(interposer::state(), pool, attribute);
  }
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
