#include "interposer/account/device.h"

#include "interposer/account/link.h"
#include "interposer/driver/own_calls.h"
#include "interposer/os/debug.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr Place kForeign{Place::Kind::kForeign, -1, 0};
constexpr Place kNoContext{Place::Kind::kNoContext, -1, 0};

bool matches(State& s, int slot, const CUuuid& uuid) {
  static_assert(sizeof(uuid.bytes) == GPUROTA_UUID_BYTES, "UUIDs are 16 bytes");
  return memcmp(s.slots[slot].uuid, uuid.bytes, sizeof(uuid.bytes)) == 0;
}

// cuDeviceGetUuid_v2 returns a MIG instance's own UUID; older drivers have only cuDeviceGetUuid.
int find_slot(State& s, CUdevice device) {
  CUuuid uuid{};
  CUresult result = GPUROTA_OWN(cuDeviceGetUuid_v2)(&uuid, device);
  if (result != CUDA_SUCCESS) result = GPUROTA_OWN(cuDeviceGetUuid)(&uuid, device);
  if (result != CUDA_SUCCESS) return -2;
  for (uint32_t i = 0; i < s.link.slot_count; ++i) {
    if (matches(s, static_cast<int>(i), uuid)) return static_cast<int>(i);
  }
  GPUROTA_DEBUG("device %d is not of this lease", device);
  return -1;
}

Place make_place(int slot, uint32_t serial) {
  if (slot < 0) return kForeign;
  return {Place::Kind::kSlot, slot, serial};
}

ContextEntry* find_entry(State& s, CUcontext context) {
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    ContextEntry& e = s.contexts.entries[i];
    if (e.context.load(std::memory_order_acquire) == context) return &e;
  }
  return nullptr;
}

// Under Contexts::mutex.
ContextEntry* free_entry(State& s) {
  for (ContextEntry& e : s.contexts.entries) {
    if (e.context.load() == nullptr && e.aside.load() == nullptr) return &e;
  }
  return nullptr;
}

void publish_entry(State& s, ContextEntry* e, CUcontext context) {
  e->context.store(context, std::memory_order_release);
  const auto end = static_cast<uint32_t>(e - s.contexts.entries + 1);
  if (end > s.contexts.used.load()) s.contexts.used.store(end, std::memory_order_release);
}

// Under Contexts::mutex.
ContextEntry* find_view_entry(State& s, CUgreenCtx green) {
  for (uint32_t i = 0; i < s.contexts.used.load(); ++i) {
    ContextEntry& e = s.contexts.entries[i];
    if (e.context.load() != nullptr && e.green == green) return &e;
  }
  return nullptr;
}

ContextInfo info_of(const ContextEntry& e) {
  return {e.context.load(), e.serial.load(), e.device, e.slot.load(), e.charged};
}

// Under the mutex. False: `e` is nullptr.
bool remove_entry(ContextEntry* e, ContextInfo* out) {
  if (e == nullptr) return false;
  *out = info_of(*e);
  e->context.store(nullptr, std::memory_order_release);
  return true;
}

// Finds a context that is being destroyed. A tool's callback may use such a context; if the context
// were recorded anew, its entry would stay for ever. Memory allocated in such a context is charged
// until the memory is freed. False: the context is not being destroyed.
bool place_aside(CUcontext context, Place* out) {
  State& s = state();
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const ContextEntry& e = s.contexts.entries[i];
    if (e.aside.load() != context) continue;
    *out = make_place(e.slot.load(std::memory_order_relaxed), 0);
    return true;
  }
  return false;
}

// Records a context that was made without our hooks (through the driver's private entry points).
Place learn_current(CUcontext context) {
  Place ending;
  if (place_aside(context, &ending)) return ending;
  CUdevice device = -1;
  if (GPUROTA_OWN(cuCtxGetDevice)(&device) != CUDA_SUCCESS) return kNoContext;
  const int slot = slot_of_device(device);
  if (!attached()) return kForeign;
  return make_place(slot, add_context(context, device, slot, false, false));
}

}  // namespace

int only_slot() {
  State& s = state();
  int32_t count = s.device_count.load(std::memory_order_relaxed);
  if (count == 0) {
    if (GPUROTA_OWN(cuDeviceGetCount)(&count) != CUDA_SUCCESS) return -1;
    s.device_count.store(count, std::memory_order_relaxed);
  }
  const int32_t known = s.device_slot[0].load(std::memory_order_relaxed);
  return count == 1 && known > 0 ? known - 1 : -1;
}

int slot_of_device(CUdevice device) {
  State& s = state();
  const bool cached = device >= 0 && device < static_cast<CUdevice>(kDevices);
  if (cached) {
    const int32_t known = s.device_slot[device].load(std::memory_order_relaxed);
    if (known != 0) return known > 0 ? known - 1 : -1;
  }
  if (!attach()) return -1;
  const int slot = find_slot(s, device);
  if (cached && slot >= -1) {
    s.device_slot[device].store(slot >= 0 ? slot + 1 : -1, std::memory_order_relaxed);
  }
  return slot >= 0 ? slot : -1;
}

Place place_of_context(CUcontext context) {
  const ContextEntry* e = find_entry(state(), context);
  if (e == nullptr) return kNoContext;
  return make_place(e->slot.load(std::memory_order_relaxed),
                    e->serial.load(std::memory_order_relaxed));
}

CUcontext context_of_serial(uint32_t serial) {
  State& s = state();
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const ContextEntry& e = s.contexts.entries[i];
    CUcontext context = e.context.load(std::memory_order_acquire);
    if (context != nullptr && e.serial.load(std::memory_order_relaxed) == serial) return context;
  }
  return nullptr;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  return GPUROTA_OWN(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : nullptr;
}

Place current_place() {
  CUcontext context = current_context();
  if (context == nullptr) return kNoContext;
  const Place known = place_of_context(context);
  return known.kind == Place::Kind::kNoContext ? learn_current(context) : known;
}

Place place_of_one_of_many(CUstream stream, bool per_thread) {
  if (reinterpret_cast<uintptr_t>(stream) <= kLastDefaultStream) return current_place();
  const Outside named = Outside::unless_default(stream);
  CUcontext context = nullptr;
  const CUresult result = per_thread ? GPUROTA_OWN(cuStreamGetCtx_ptsz)(named, stream, &context)
                                     : GPUROTA_OWN(cuStreamGetCtx)(named, stream, &context);
  if (result != CUDA_SUCCESS) return kNoContext;
  const Place known = place_of_context(context);
  return known.kind == Place::Kind::kNoContext ? current_place() : known;
}

InContext::InContext(CUcontext context) {
  if (context == nullptr || current_context() == context) return;
  pushed_ = GPUROTA_OWN(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
}

InContext::~InContext() {
  CUcontext popped = nullptr;
  if (pushed_) GPUROTA_OWN(cuCtxPopCurrent_v2)(&popped);
}

uint32_t add_context(CUcontext context, CUdevice device, int slot, bool primary, bool charged) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  if (ContextEntry* known = find_entry(s, context)) {
    if (!charged) return known->serial.load();
    known->context.store(nullptr);  // the context was destroyed unseen, and its handle reused
  }
  const uint32_t serial = s.contexts.last_serial.fetch_add(1) + 1;
  ContextEntry* e = free_entry(s);
  if (e == nullptr) return 0;  // table full: the context's memory is charged until freed
  e->serial.store(serial);
  e->slot.store(slot);
  e->green = nullptr;
  e->references = 1;
  e->device = device;
  e->primary = primary;
  e->charged = charged;
  publish_entry(s, e, context);
  return serial;
}

uint32_t refer(CUcontext context, int by) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  ContextEntry* e = find_entry(s, context);
  if (e == nullptr) return 1;
  e->references += static_cast<uint32_t>(by);
  return e->references;
}

void add_view(CUcontext view, CUgreenCtx green, CUdevice device, int slot, uint32_t serial) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  ContextEntry* e = find_entry(s, view);
  if (e == nullptr) e = free_entry(s);
  if (e == nullptr) return;
  e->serial.store(serial);
  e->slot.store(slot);
  e->green = green;
  e->references = 1;
  e->device = device;
  e->primary = false;
  e->charged = false;
  publish_entry(s, e, view);
}

bool find_view(CUgreenCtx green, ContextInfo* out) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  const ContextEntry* e = find_view_entry(s, green);
  if (e != nullptr) *out = info_of(*e);
  return e != nullptr;
}

bool remove_view(CUgreenCtx green, ContextInfo* out) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  return remove_entry(find_view_entry(s, green), out);
}

bool remove_context(CUcontext context, ContextInfo* out) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  return remove_entry(find_entry(s, context), out);
}

int set_context_aside(CUcontext context, ContextInfo* out) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  ContextEntry* e = find_entry(s, context);
  if (e == nullptr) return -1;
  *out = info_of(*e);
  e->aside.store(context);
  e->context.store(nullptr, std::memory_order_release);
  return static_cast<int>(e - s.contexts.entries);
}

void settle_aside(int entry, CUcontext context, bool gone) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  ContextEntry& e = s.contexts.entries[entry];
  if (!gone) e.context.store(context, std::memory_order_release);
  e.aside.store(nullptr);
}

bool any_context() {
  State& s = state();
  const uint32_t used = s.contexts.used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const ContextEntry& e = s.contexts.entries[i];
    if (e.context.load(std::memory_order_acquire) != nullptr && e.slot.load() >= 0) return true;
  }
  return false;
}

bool find_primary(CUdevice device, ContextInfo* out) {
  State& s = state();
  Lock lock(s.contexts.mutex);
  for (uint32_t i = 0; i < s.contexts.used.load(); ++i) {
    const ContextEntry& e = s.contexts.entries[i];
    if (e.context.load() == nullptr || !e.primary || e.device != device) continue;
    *out = info_of(e);
    return true;
  }
  return false;
}

}  // namespace gpurota::interposer
