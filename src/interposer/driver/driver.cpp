#include "interposer/driver/driver.h"

#include "interposer/driver/driver_part.h"
#include "interposer/os/debug.h"
#include "interposer/os/elf_symbols.h"
#include "interposer/os/sys.h"

#include <cstring>

#include <dlfcn.h>

extern "C" __attribute__((visibility("hidden"))) void* (*gpurota_real_dlsym)(void*, const char*);

namespace gpurota::interposer {

void* g_real_functions[kFnCount];
std::atomic<bool> g_driver_found{false};

namespace {

struct Hook {
  const char* symbol;
  const char* base;
  int version;
  cuuint64_t flags;
  void* address;
};

// Filled at link time, because a constructor of another library may look up driver functions before
// our constructors have run. With a function call in place of the cast, the addresses would be
// empty until our constructors run.
const Hook kHooks[kHookCount] = {
#define GPUROTA_HOOK(symbol, base, version, flags) \
  {#symbol, base, version, flags, reinterpret_cast<void*>(&::symbol)},
    GPUROTA_HOOKED_FUNCTIONS(GPUROTA_HOOK)
#undef GPUROTA_HOOK
};

const char* const kCalled[] = {
#define GPUROTA_NAME(symbol) #symbol,
    GPUROTA_CALLED_FUNCTIONS(GPUROTA_NAME)
#undef GPUROTA_NAME
};

// Maps a pointer to its hook: open addressing, at most two pointers per hook (see publish()).
constexpr size_t kPointerSlots = 2048;
static_assert(kPointerSlots >= size_t{4} * kHookCount, "the pointer table must stay sparse");
struct PointerSlot {
  void* pointer;
  void* hook;
};
PointerSlot g_pointers[kPointerSlots];
void* g_driver_handle;

size_t slot_of(void* pointer) {
  const auto bits = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<size_t>((bits * 0x9e3779b97f4a7c15u) >> 53);
}

void add_pointer(void* pointer, void* hook) {
  if (pointer == nullptr) return;
  for (size_t i = slot_of(pointer);; i = (i + 1) % kPointerSlots) {
    if (g_pointers[i].pointer == pointer) return;
    if (g_pointers[i].pointer != nullptr) continue;
    g_pointers[i] = {pointer, hook};
    return;
  }
}

// The result of one search of the driver, before it is published.
struct Found {
  void* handle;
  void* functions[kFnCount];
  void* by_version[kHookCount];
};

// A driver may answer cuGetProcAddress with an address that differs from the one it exports under
// that name, so each hook is known by both addresses. The version and flags asked for here are
// those of the hook's exact type.
void ask_by_version(Found* found) {
  const auto ask =
      reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(found->functions[kFn_cuGetProcAddress_v2]);
  const auto ask_v1 =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(found->functions[kFn_cuGetProcAddress]);
  for (int i = 0; i < kHookCount; ++i) {
    const Hook& hook = kHooks[i];
    void* pointer = nullptr;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (ask != nullptr) {
      CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
      result = ask(hook.base, &pointer, hook.version, hook.flags, &status);
    } else if (ask_v1 != nullptr) {
      result = ask_v1(hook.base, &pointer, hook.version, hook.flags);
    }
    found->by_version[i] = result == CUDA_SUCCESS ? pointer : nullptr;
  }
}

// RTLD_NOLOAD: only the program chooses and loads the driver. The reference is kept, because the
// program may close its own handle while our pointers are in use.
bool search_driver(Found* found) {
  using Dlopen = void*(const char*, int);
  const auto real_dlopen = reinterpret_cast<Dlopen*>(find_libc_symbol("dlopen"));
  if (real_dlopen == nullptr) return false;
  void* libcuda = real_dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (libcuda == nullptr) return false;
  found->handle = libcuda;
  for (int i = 0; i < kHookCount; ++i) {
    found->functions[i] = gpurota_real_dlsym(libcuda, kHooks[i].symbol);
  }
  for (int i = kHookCount; i < kFnCount; ++i) {
    found->functions[i] = gpurota_real_dlsym(libcuda, kCalled[i - kHookCount]);
  }
  ask_by_version(found);
  return true;
}

// Adds the exported addresses first: if a driver has one address for two hooked functions, the hook
// of the exported name keeps the address.
void publish(const Found& found) {
  Lock lock(driver_part().driver_mutex);
  if (g_driver_found.load(std::memory_order_relaxed)) return;
  g_driver_handle = found.handle;
  memcpy(g_real_functions, found.functions, sizeof(g_real_functions));
  for (int i = 0; i < kHookCount; ++i) add_pointer(found.functions[i], kHooks[i].address);
  for (int i = 0; i < kHookCount; ++i) add_pointer(found.by_version[i], kHooks[i].address);
  g_driver_found.store(true, std::memory_order_release);
  GPUROTA_DEBUG("found the driver; %d functions are hooked", static_cast<int>(kHookCount));
}

}  // namespace

// Holds no lock of ours while it takes the loader's lock: a thread that runs a constructor inside
// dlopen() has the loader's lock, and may wait for ours in this function.
bool find_driver() {
  if (g_driver_found.load(std::memory_order_acquire)) return true;
  ErrnoGuard guard;
  Found found;
  if (search_driver(&found)) publish(found);
  return g_driver_found.load(std::memory_order_acquire);
}

void* hook_for_pointer(void* pointer) {
  if (pointer == nullptr || !driver_ready()) return nullptr;
  for (size_t i = slot_of(pointer);; i = (i + 1) % kPointerSlots) {
    if (g_pointers[i].pointer == pointer) return g_pointers[i].hook;
    if (g_pointers[i].pointer == nullptr) return nullptr;
  }
}

void* hook_address(int id) { return kHooks[id].address; }

DriverName find_driver_name(const char* name) {
  size_t low = 0;
  size_t high = sizeof(kDriverNames) / sizeof(kDriverNames[0]);
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const DriverNameEntry& entry = kDriverNames[middle];
    const int order = strcmp(name, kDriverNamePool + entry.offset);
    if (order == 0) return {true, entry.hook, entry.in_hooked_family};
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return {false, -1, false};
}

bool driver_exports(const char* name, void* pointer) {
  return driver_ready() && gpurota_real_dlsym(g_driver_handle, name) == pointer;
}

CUresult missing_function(const char* name) {
  GPUROTA_DEBUG("the driver has no %s, or is not loaded", name);
  return driver_ready() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace gpurota::interposer
