#include "interposer/account/nvml.h"

#include "interposer/account/link.h"
#include "interposer/account/state.h"
#include "interposer/os/debug.h"
#include "interposer/os/elf_symbols.h"
#include "interposer/os/sys.h"

#include <cstring>

#include <dlfcn.h>

extern "C" __attribute__((visibility("hidden"))) void* (*gpurota_real_dlsym)(void*, const char*);

namespace gpurota::interposer {
namespace {

struct NvmlHook {
  const char* name;
  void* address;
};

const NvmlHook kNvmlHooks[kNvmlHookCount] = {
#define GPUROTA_HOOK(symbol) {#symbol, reinterpret_cast<void*>(&::symbol)},
    GPUROTA_NVML_FUNCTIONS(GPUROTA_HOOK)
#undef GPUROTA_HOOK
};

std::atomic<void*> g_functions[kNvmlFnCount];
std::atomic<bool> g_found{false};

// Finds the program's own copy of NVML, and keeps it loaded while our pointers are in use, as
// driver.cpp does with the driver. Threads that run this function at the same time find the same
// addresses.
bool find_nvml() {
  if (g_found.load(std::memory_order_acquire)) return true;
  ErrnoGuard guard;
  using Dlopen = void*(const char*, int);
  const auto real_dlopen = reinterpret_cast<Dlopen*>(find_libc_symbol("dlopen"));
  if (real_dlopen == nullptr) return false;
  void* library = real_dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  for (int i = 0; i < kNvmlHookCount; ++i) {
    g_functions[i].store(gpurota_real_dlsym(library, kNvmlHooks[i].name),
                         std::memory_order_relaxed);
  }
  g_functions[kFn_nvmlDeviceGetUUID].store(gpurota_real_dlsym(library, "nvmlDeviceGetUUID"),
                                           std::memory_order_relaxed);
  g_found.store(true, std::memory_order_release);
  GPUROTA_DEBUG("found NVML; it shows this lease's memory and processes");
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "GPU-" or "MIG-" and a UUID. The older form of MIG devices ("MIG-GPU-…/1/0") has no UUID of its
// own.
bool parse_uuid(const char* text, uint8_t (&out)[GPUROTA_UUID_BYTES]) {
  if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0) return false;
  constexpr size_t kDigits = sizeof(out) * 2;
  size_t digits = 0;
  for (text += 4; *text != '\0'; ++text) {
    if (*text == '-') continue;
    const int digit = hex_digit(*text);
    if (digit < 0 || digits == kDigits) return false;
    const int high = digits % 2 == 0 ? 0 : out[digits / 2] << 4;
    out[digits / 2] = static_cast<uint8_t>(high | digit);
    ++digits;
  }
  return digits == kDigits;
}

}  // namespace

void* nvml_function(NvmlFn id) {
  return find_nvml() ? g_functions[id].load(std::memory_order_relaxed) : nullptr;
}

int nvml_hook_by_name(const char* name) {
  for (int i = 0; i < kNvmlHookCount; ++i) {
    if (strcmp(kNvmlHooks[i].name, name) == 0) return i;
  }
  return -1;
}

void* nvml_hook_address(int id) { return kNvmlHooks[id].address; }

// Not cached: a handle may stand for another device after nvmlShutdown and nvmlInit.
int slot_of_nvml_device(nvmlDevice_t device) {
  if (lease_pending()) return -1;
  using GetUuid = nvmlReturn_t(nvmlDevice_t, char*, unsigned);
  const auto get_uuid = reinterpret_cast<GetUuid*>(nvml_function(kFn_nvmlDeviceGetUUID));
  char text[NVML_DEVICE_UUID_BUFFER_SIZE];
  uint8_t uuid[GPUROTA_UUID_BYTES];
  if (get_uuid == nullptr || get_uuid(device, text, sizeof(text)) != NVML_SUCCESS ||
      !parse_uuid(text, uuid) || !attach_now()) {
    return -1;
  }
  const State& s = state();
  for (uint32_t i = 0; i < s.link.slot_count; ++i) {
    if (memcmp(s.slots[i].uuid, uuid, sizeof(uuid)) == 0) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace gpurota::interposer
