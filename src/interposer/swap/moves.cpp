// The worker's part that moves memory: orders to move, and the host memory for evictions.
#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/os/debug.h"
#include "interposer/swap/devices.h"
#include "interposer/swap/freed.h"
#include "interposer/swap/grants.h"
#include "interposer/swap/mover.h"
#include "interposer/swap/rdma.h"
#include "interposer/swap/worker_parts.h"

namespace gpurota::interposer {
namespace {

// How long to wait for work that was submitted just when the daemon saw everything drained.
constexpr int64_t kDrainMs = 2000;

void use_no_context() { GPUROTA_OWN(cuCtxSetCurrent)(nullptr); }

// The sum over all GPUs of the process, except `but` if it is given.
uint64_t host_sum(Swap& swap, uint64_t (HostMemory::*bytes)(), const SwapDevice* but = nullptr) {
  uint64_t sum = 0;
  for (SwapDevice& device : swap.devices) {
    if (&device != but && device.ready.load() != 0) sum += (device.space.host().*bytes)();
  }
  return sum;
}

// Lets a GPU use all of the process's budget that its other GPUs do not use.
void set_limits(Swap& swap, SwapDevice& device) {
  const uint64_t budget = swap.host_bytes.load();
  const uint64_t pinned = swap.pinned_bytes.load();
  const uint64_t others = host_sum(swap, &HostMemory::total_bytes, &device);
  const uint64_t others_pinned = host_sum(swap, &HostMemory::pinned_bytes, &device);
  device.space.host().set_limits(&device.calls, budget > others ? budget - others : 0,
                                 pinned > others_pinned ? pinned - others_pinned : 0);
}

// Gives back up to `bytes` of one GPU's host memory, which must be free or have only copies of
// resident blocks.
void give_host_memory(SwapDevice& device, uint64_t bytes) {
  HostMemory& host = device.space.host();
  Mover(device.space, nullptr, nullptr).reclaim_buffers(host.free_bytes() + bytes);
  const uint64_t free = host.free_bytes();
  host.trim(free > bytes ? free - bytes : 0);
}

// Gives back host memory in which other GPUs of the process keep copies of resident blocks, to make
// room for an eviction of `bytes` here.
void make_host_room(Swap& swap, SwapDevice& device, uint64_t bytes) {
  const uint64_t budget = swap.host_bytes.load();
  const uint64_t needed = device.space.out_bytes() + bytes + kRegionBytes;
  for (SwapDevice& other : swap.devices) {
    const uint64_t others = host_sum(swap, &HostMemory::total_bytes, &device);
    if (&other == &device || other.ready.load() == 0 || others + needed <= budget) continue;
    give_host_memory(other, others + needed - budget);
  }
}

// Gives back one region of host memory that the daemon wants for other uses. False: no region can
// be given back.
bool give_back_one(Swap& swap) {
  Lock lock(swap.contexts_mutex);
  for (SwapDevice& device : swap.devices) {
    if (device.ready.load() == 0) continue;
    const uint64_t before = device.space.host().total_bytes();
    give_host_memory(device, kRegionBytes);
    if (device.space.host().total_bytes() < before) return true;
  }
  return false;
}

void on_evicted(void* self, uint64_t bytes, uint64_t clean) {
  Worker& w = *static_cast<Worker*>(self);
  swap_moved(w.moving, GPUROTA_SWAP_EVICT, bytes, clean);
  if (w.told) tell(w, w.told_seq);  // reports submissions that have come to the gate meanwhile
}

void on_restored(void* self, uint64_t bytes, uint64_t /*clean*/) {
  Worker& w = *static_cast<Worker*>(self);
  swap_moved(w.moving, GPUROTA_SWAP_RESTORE, bytes, 0);
  if (w.told) tell(w, w.told_seq);
}

// Stops submissions, and waits until nothing is in flight. False: work is still in flight, and does
// not end.
bool drain(Worker& w) {
  if (w.swap.drained.load() != 0) return true;
  {
    Lock lock(w.swap.gate_mutex);
    w.swap.gate.set(GateState::kAway);
  }
  const int64_t deadline = now_ms() + kDrainMs;
  while (!w.swap.gate.wait_inside(deadline) || is_busy(w)) {
    if (now_ms() >= deadline) return false;
    sleep_ms(1);
  }
  // Submissions that were let through may have changed resident memory, although the gate was not
  // opened.
  if (w.swap.gate.take_let_through()) forget_copies(w.swap);
  w.swap.drained.store(1, std::memory_order_release);
  return true;
}

// Ends the state of moving once all memory is resident again: calls that need only resident memory
// may continue.
void end_moving(Worker& w) {
  if (out_bytes(w.swap) != 0 || w.swap.gate.state() != GateState::kAway) return;
  w.swap.drained.store(0, std::memory_order_release);
  Lock lock(w.swap.gate_mutex);
  w.swap.gate.set(GateState::kShut);
}

// Memory of cuMemAlloc ends with its context. Memory that the program mapped itself stays, and
// needs another context.
bool is_being_freed(Worker& w, CUresult no_stream) {
  return no_stream == CUDA_ERROR_INVALID_CONTEXT &&
         memory_of(w.s).vmm.moving.load(std::memory_order_relaxed) == 0;
}

// The driver shuts down when the program ends, and its memory goes with it. An error from any call
// is not a failure if the driver has shut down.
bool has_failed(CUresult result) {
  int count = 0;
  return result != CUDA_SUCCESS &&
         GPUROTA_OWN(cuDeviceGetCount)(&count) != CUDA_ERROR_DEINITIALIZED;
}

// Tells the daemon of memory that the program freed while it was moved.
void tell_ended(int slot, SwapDevice& device, const Moved& moved) {
  swap_shrink(slot, moved.freed_here, moved.freed_out, 0);
  device.space.ended(moved.freed_here + moved.freed_out);
}

void evict(Worker& w, int slot, uint64_t bytes) {
  SwapDevice& device = w.swap.devices[slot];
  if (device.ready.load() == 0 || device.space.resident_bytes() == 0) {
    return swap_order_ended(slot, GPUROTA_SWAP_EVICT, false, bytes);
  }
  const bool open = w.swap.gate.state() == GateState::kOpen;
  if (open || !drain(w)) {
    GPUROTA_DEBUG("slot %d: cannot evict: %s", slot,
                  open ? "the gate is open" : "it does not drain");
    end_moving(w);
    return swap_order_ended(slot, GPUROTA_SWAP_EVICT, true, bytes);
  }
  swap_end_freed(w.s, w.swap.freed_last.load());  // nothing in flight: freed memory need not move
  char device_name[128];
  if (find_rdma_device(device_name, sizeof(device_name))) {
    GPUROTA_DEBUG("slot %d: cannot evict: %s is open", slot, device_name);
    end_moving(w);
    return swap_order_ended(slot, GPUROTA_SWAP_EVICT, GPUROTA_SWAP_RDMA, bytes);
  }
  Lock lock(w.swap.contexts_mutex);
  const CUresult can = have_stream(w.s, slot);
  if (can != CUDA_SUCCESS) {
    GPUROTA_DEBUG("slot %d: cannot evict: no context for the copies (result %d)", slot, can);
    const bool failed = has_failed(can) && !is_being_freed(w, can);
    return swap_order_ended(slot, GPUROTA_SWAP_EVICT, failed, bytes);
  }
  make_host_room(w.swap, device, bytes);
  set_limits(w.swap, device);
  w.moving = slot;
  const int64_t begun = now_ms();
  const Moved moved = Mover(device.space, on_evicted, &w).evict(bytes);
  tell_ended(slot, device, moved);
  GPUROTA_DEBUG(
      "slot %d: evicted %llu of %llu bytes, %llu of them not copied, in %lld ms (result %d)", slot,
      static_cast<unsigned long long>(moved.bytes), static_cast<unsigned long long>(bytes),
      static_cast<unsigned long long>(moved.clean), static_cast<long long>(now_ms() - begun),
      moved.result);
  const uint64_t left = moved.bytes < bytes ? bytes - moved.bytes : 0;
  swap_order_ended(slot, GPUROTA_SWAP_EVICT, has_failed(moved.result), left);
}

// Parks memory that the program mapped itself. Such memory outlives its contexts, but needs no room
// on the GPU until there is a context again.
bool park(Worker& w, int slot) {
  if (any_context() || memory_of(w.s).vmm.moving.load(std::memory_order_relaxed) == 0) return false;
  GPUROTA_DEBUG("slot %d: no context is left: what is out stays there until there is one", slot);
  swap_park(slot);
  return true;
}

// Room that the daemon has given while a restore is under way. Zero while another GPU has orders:
// GPUs take turns, order by order.
uint64_t more_room(void* self) {
  Worker& w = *static_cast<Worker*>(self);
  for (const SwapDevice& other : w.swap.devices) {
    if (&other == &w.swap.devices[w.moving]) continue;
    if (other.evict.load() != 0 || other.restore.load() != 0) return 0;
  }
  return w.swap.devices[w.moving].restore.exchange(0);
}

// Room that no block fits in is given back: another lease may wait for it.
void restore(Worker& w, int slot) {
  SwapDevice& device = w.swap.devices[slot];
  Moved moved{};
  moved.room = device.restore.exchange(0);
  if (device.ready.load() != 0 && device.space.out_bytes() != 0 && swap_parked(slot) == 0) {
    Lock lock(w.swap.contexts_mutex);
    const CUresult can = have_stream(w.s, slot);
    const bool parked = can == CUDA_ERROR_INVALID_CONTEXT && park(w, slot);
    if (can != CUDA_SUCCESS) {
      GPUROTA_DEBUG("slot %d: cannot restore: no context for the copies (result %d)", slot, can);
      if (!parked && !is_being_freed(w, can)) moved.result = can;
    } else {
      w.moving = slot;
      const int64_t begun = now_ms();
      moved = Mover(device.space, on_restored, &w).restore(moved.room, more_room);
      tell_ended(slot, device, moved);
      GPUROTA_DEBUG("slot %d: restored %llu bytes in %lld ms (result %d)", slot,
                    static_cast<unsigned long long>(moved.bytes),
                    static_cast<long long>(now_ms() - begun), moved.result);
    }
  }
  swap_order_ended(slot, GPUROTA_SWAP_RESTORE, has_failed(moved.result), moved.room - moved.bytes);
}

}  // namespace

void forget_copies(Swap& swap) {
  for (SwapDevice& device : swap.devices) {
    if (device.ready.load() != 0) Mover(device.space, nullptr, nullptr).forget_copies();
  }
}

uint64_t out_bytes(Swap& swap) {
  uint64_t out = 0;
  for (int slot = 0; slot < GPUROTA_SLOTS; ++slot) {
    const uint64_t here = swap.devices[slot].space.out_bytes();
    const uint64_t parked = swap_parked(slot);
    out += here > parked ? here - parked : 0;
  }
  return out;
}

uint64_t pinned_bytes(Swap& swap) { return host_sum(swap, &HostMemory::pinned_bytes); }

void carry_out_moves(Worker& w) {
  bool any = false;
  for (uint32_t i = 0; i < w.s.link.slot_count; ++i) {
    const int slot = static_cast<int>(i);
    SwapDevice& device = w.swap.devices[i];
    if (const uint64_t bytes = device.evict.exchange(0)) {
      evict(w, slot, bytes);
      any = true;
    }
    if (device.restore.load() != 0) {
      restore(w, slot);
      any = true;
    }
  }
  if (!any) return;
  end_moving(w);
  use_no_context();
}

// Pins one region whose memory exists already, so the bound on kept memory does not matter.
static bool pin_more(Worker& w) {
  for (uint32_t i = 0; i < w.s.link.slot_count; ++i) {
    SwapDevice& device = w.swap.devices[i];
    if (device.ready.load() == 0) continue;
    set_limits(w.swap, device);
    Lock lock(w.swap.contexts_mutex);
    if (have_stream(w.s, static_cast<int>(i)) != CUDA_SUCCESS) continue;
    if (device.space.host().pin_more()) return true;
  }
  return false;
}

bool prepare_host_memory(Worker& w) {
  const bool will_be_needed =
      w.swap.takes_turns.load() != GPUROTA_TURNS_NONE || w.swap.last_close_ms.load() != 0;
  const GateState gate = w.swap.gate.state();
  if (!will_be_needed || gate == GateState::kShut) return false;
  // Blocks that were evicted before enough was pinned come back faster.
  if (gate == GateState::kAway) return pin_more(w);
  const uint64_t may_keep = w.swap.kept_bytes.load();
  const uint64_t held = host_sum(w.swap, &HostMemory::total_bytes);
  if (may_keep != 0 && held > may_keep) return give_back_one(w.swap);
  // The limit of this process has become smaller, so that others may pin the bytes that it gives
  // back.
  const uint64_t all_pinned = host_sum(w.swap, &HostMemory::pinned_bytes);
  if (all_pinned > w.swap.pinned_bytes.load() && give_back_one(w.swap)) return true;
  if (pin_more(w)) return true;
  if (may_keep != 0 && held + kRegionBytes > may_keep) return false;
  for (uint32_t i = 0; i < w.s.link.slot_count; ++i) {
    SwapDevice& device = w.swap.devices[i];
    if (device.ready.load() == 0) continue;
    HostMemory& host = device.space.host();
    set_limits(w.swap, device);
    uint64_t wanted = device.space.resident_bytes();
    const uint64_t pinned = w.swap.pinned_bytes.load();
    if (wanted > pinned) wanted = pinned;
    if (host.total_bytes() >= wanted) continue;
    host.touch_next();  // takes long, so no lock is held that a call of the program might need
    Lock lock(w.swap.contexts_mutex);
    if (have_stream(w.s, static_cast<int>(i)) == CUDA_SUCCESS &&
        host.prepare(host.free_bytes() + 1))
      return true;
  }
  return false;
}

}  // namespace gpurota::interposer
