// How a program finds driver functions, and gets ours instead: dlsym, dlvsym (called from the
// assembly stubs) and cuGetProcAddress.
//
// The rule: ask the real function first, then replace the *pointer* that came back. Versions,
// stream flags and wrappers of other libraries are then right by construction.
#include "interposer/account/automatic.h"
#include "interposer/account/nvml.h"
#include "interposer/account/state.h"
#include "interposer/driver/driver.h"
#include "interposer/os/config.h"
#include "interposer/os/debug.h"
#include "interposer/os/elf_symbols.h"
#include "interposer/os/sys.h"

#include <cstring>

#include <dlfcn.h>

#define GPUROTA_HIDDEN extern "C" __attribute__((visibility("hidden")))

GPUROTA_HIDDEN void* (*gpurota_real_dlsym)(void*, const char*);
GPUROTA_HIDDEN void* (*gpurota_real_dlvsym)(void*, const char*, const char*);
GPUROTA_HIDDEN void* (*gpurota_real_dlmopen)(Lmid_t, const char*, int);
GPUROTA_HIDDEN void gpurota_find_real_dlsym();
GPUROTA_HIDDEN void* gpurota_dlsym_hook(void* handle, const char* name);
GPUROTA_HIDDEN void* gpurota_dlvsym_hook(void* handle, const char* name, const char* version);
GPUROTA_HIDDEN void* gpurota_dlmopen_hook(Lmid_t space, const char* file, int mode);

namespace gpurota::interposer {
namespace {

void* no_dlsym(void*, const char*) { return nullptr; }
void* no_dlvsym(void*, const char*, const char*) { return nullptr; }
void* no_dlmopen(Lmid_t, const char*, int) { return nullptr; }

// Whether the file name is that of a library whose functions we hook.
bool is_ours_to_watch(const char* file) {
  const char* slash = strrchr(file, '/');
  const char* name = slash != nullptr ? slash + 1 : file;
  return strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libnvidia-ml.so", 15) == 0;
}

// Records that a lookup returned the driver's own function `name`, for which there is no hook. Only
// NVML counts what that function allocates.
void count_unhooked(const char* name, int version) {
  state().count_unhooked(name);
  GPUROTA_DEBUG(
      "no hook for %s (version %d) of this driver: what it allocates is counted by NVML only", name,
      version);
}

// The address to hand out in place of `found`, which a lookup of the hooked symbol `id` gave.
void* replace(const char* name, int id, void* found) {
  if (found == g_real_functions[id]) {
    GPUROTA_DEBUG("%s: ours", name);
    return hook_address(id);
  }
  return hook_for_pointer(found);  // nullptr: another library's own function of that name
}

// Whether `handle` is RTLD_NEXT or RTLD_DEFAULT. RTLD_NEXT is not resolved for the calling library,
// because every library must get the hook for a hooked name.
bool is_search(void* handle) { return handle == RTLD_NEXT || handle == RTLD_DEFAULT; }

// look_up_nvml() and look_up(): nullptr lets the stub jump to the real function.
template <typename Lookup>
void* look_up_nvml(void* handle, const char* name, Lookup lookup) {
  const int id = nvml_hook_by_name(name);
  if (id < 0) return nullptr;
  ErrnoGuard guard;
  void* found = is_search(handle) ? nullptr : lookup();
  void* real = nvml_function(static_cast<NvmlFn>(id));
  const bool is_real = is_search(handle) ? real != nullptr : found != nullptr && found == real;
  if (is_real) GPUROTA_DEBUG("%s: ours", name);
  return is_real ? nvml_hook_address(id) : nullptr;
}

template <typename Lookup>
void* look_up(void* handle, const char* name, Lookup lookup) {
  if (!active()) return nullptr;
  if (name[0] == 'n') return look_up_nvml(handle, name, lookup);
  const DriverName listed = find_driver_name(name);
  if (listed.hook < 0 && listed.known && !listed.hooked_family) return nullptr;
  ErrnoGuard guard;
  if (is_search(handle)) {
    return listed.hook >= 0 && driver_ready() ? hook_address(listed.hook) : nullptr;
  }
  void* found = lookup();
  if (found == nullptr) return nullptr;
  if (listed.hook >= 0 && !can_hold()) return hook_address(listed.hook);  // cuInit refuses it
  if (!driver_ready()) return nullptr;
  if (listed.hook >= 0) return replace(name, listed.hook, found);
  if (hook_for_pointer(found) == nullptr && driver_exports(name, found)) count_unhooked(name, 0);
  return nullptr;
}

// Replaces the pointer that the driver returned for `symbol`, if we hook that function.
void replace_proc_address(const char* symbol, int version, void** pfn) {
  if (symbol == nullptr || pfn == nullptr || *pfn == nullptr) return;
  void* hook = hook_for_pointer(*pfn);
  if (hook == nullptr && strcmp(symbol, "cuGetProcAddress") == 0) {
    hook = hook_address(version >= 12000 ? kFn_cuGetProcAddress_v2 : kFn_cuGetProcAddress);
  }
  if (hook != nullptr) {
    GPUROTA_DEBUG("%s, version %d: ours", symbol, version);
    *pfn = hook;
    return;
  }
  const DriverName listed = find_driver_name(symbol);
  if (!listed.known || listed.hooked_family) count_unhooked(symbol, version);
}

}  // namespace
}  // namespace gpurota::interposer

using gpurota::interposer::find_libc_symbol;
using gpurota::interposer::replace_proc_address;

void gpurota_find_real_dlsym() {
  gpurota::interposer::ErrnoGuard guard;
  void* dlsym_found = find_libc_symbol("dlsym");
  void* dlvsym_found = find_libc_symbol("dlvsym");
  auto real_dlsym = reinterpret_cast<decltype(gpurota_real_dlsym)>(dlsym_found);
  auto real_dlvsym = reinterpret_cast<decltype(gpurota_real_dlvsym)>(dlvsym_found);
  void* dlmopen_found = find_libc_symbol("dlmopen");
  auto real_dlmopen = reinterpret_cast<decltype(gpurota_real_dlmopen)>(dlmopen_found);
  if (real_dlmopen == nullptr) real_dlmopen = gpurota::interposer::no_dlmopen;
  if (real_dlsym == nullptr) real_dlsym = gpurota::interposer::no_dlsym;
  if (real_dlvsym == nullptr) real_dlvsym = gpurota::interposer::no_dlvsym;
  __atomic_store_n(&gpurota_real_dlsym, real_dlsym, __ATOMIC_RELEASE);
  __atomic_store_n(&gpurota_real_dlvsym, real_dlvsym, __ATOMIC_RELEASE);
  __atomic_store_n(&gpurota_real_dlmopen, real_dlmopen, __ATOMIC_RELEASE);
}

// In a namespace of its own the driver would be another copy, without our library. So the driver is
// opened among the program's own libraries instead. nullptr lets the stub jump to the real
// function.
void* gpurota_dlmopen_hook(Lmid_t space, const char* file, int mode) {
  using Dlopen = void*(const char*, int);
  if (file == nullptr || space == LM_ID_BASE || !gpurota::interposer::is_ours_to_watch(file) ||
      !gpurota::interposer::active()) {
    return nullptr;
  }
  gpurota::interposer::ErrnoGuard guard;
  const auto real_dlopen = reinterpret_cast<Dlopen*>(find_libc_symbol("dlopen"));
  return real_dlopen != nullptr ? real_dlopen(file, mode) : nullptr;
}

void* gpurota_dlsym_hook(void* handle, const char* name) {
  return gpurota::interposer::look_up(handle, name,
                                      [=] { return gpurota_real_dlsym(handle, name); });
}

void* gpurota_dlvsym_hook(void* handle, const char* name, const char* version) {
  return gpurota::interposer::look_up(handle, name,
                                      [=] { return gpurota_real_dlvsym(handle, name, version); });
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  GPUROTA_ENTER(cuGetProcAddress, symbol, pfn, version, flags);
  const CUresult result = real(symbol, pfn, version, flags);
  if (result == CUDA_SUCCESS) replace_proc_address(symbol, version, pfn);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  GPUROTA_ENTER(cuGetProcAddress_v2, symbol, pfn, version, flags, status);
  const CUresult result = real(symbol, pfn, version, flags, status);
  if (result == CUDA_SUCCESS) replace_proc_address(symbol, version, pfn);
  return result;
}
