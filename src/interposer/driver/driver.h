// The real driver: one table of its functions, filled once from the libcuda.so.1 that the program
// has loaded, and a lookup from a driver function's address to our hook.
//
// Hooks call the driver through this table only, never through the dynamic linker, so a hook cannot
// call itself. Lock-free once filled. A fork does not wipe the table, as its addresses stay valid.
#pragma once

#include "interposer/driver/driver_functions.h"
#include "interposer/os/config.h"

#include <atomic>
#include <cstddef>

namespace gpurota::interposer {

enum Fn : int {
#define GPUROTA_FN(symbol, ...) kFn_##symbol,
  GPUROTA_HOOKED_FUNCTIONS(GPUROTA_FN) kHookCount,
  kFnBeforeCalled = kHookCount - 1,
  GPUROTA_CALLED_FUNCTIONS(GPUROTA_FN) kFnCount
#undef GPUROTA_FN
};

extern void* g_real_functions[kFnCount];
extern std::atomic<bool> g_driver_found;

// Looks for the driver if that has not succeeded yet. False while no libcuda.so.1 is loaded.
bool find_driver();

inline bool driver_ready() {
  return g_driver_found.load(std::memory_order_acquire) || find_driver();
}

// The driver's own function; nullptr if there is no driver or it does not have this function.
template <typename F>
F* real_function(Fn id) {
  return driver_ready() ? reinterpret_cast<F*>(g_real_functions[id]) : nullptr;
}

// The hook that stands in for the driver's function at `pointer`; nullptr if none does.
void* hook_for_pointer(void* pointer);

void* hook_address(int id);

// The entry of a name in the list of driver functions.
struct DriverName {
  bool known;          // it is in the list
  int hook;            // its hook, -1: none
  bool hooked_family;  // another version or stream variant of it is hooked
};
DriverName find_driver_name(const char* name);

// Whether the loaded driver exports `name` at `pointer`. Other libraries may have functions of the
// same name.
bool driver_exports(const char* name, void* pointer);

// The result of a hook when the driver lacks the hooked function.
CUresult missing_function(const char* name);

}  // namespace gpurota::interposer

// The driver's own `symbol`, with its declared type.
#define GPUROTA_REAL(symbol) \
  (::gpurota::interposer::real_function<decltype(::symbol)>(::gpurota::interposer::kFn_##symbol))

// Begins the body of a hook: `real` is the driver's function. Without a lease the hook only calls
// `real`.
#define GPUROTA_ENTER(symbol, ...)                                              \
  const auto real = GPUROTA_REAL(symbol);                                       \
  if (real == nullptr) return ::gpurota::interposer::missing_function(#symbol); \
  if (!::gpurota::interposer::active()) return real(__VA_ARGS__)
