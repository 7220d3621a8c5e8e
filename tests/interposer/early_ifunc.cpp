// Looks up functions in an IFUNC resolver. The resolver runs before libgpurota is relocated,
// because the library of early_ifunc_user.cpp has the address of the IFUNC in its data, and is
// relocated earlier than libgpurota.
#include "early.h"

#include <dlfcn.h>
#include <unistd.h>

Early early;

extern "C" int early_resolved();

namespace {

template <typename F>
void find(F** out, const char* name) {
  *out = reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

int is_right() { return 1; }
int is_wrong() { return 0; }

}  // namespace

extern "C" {

// The C library's own functions are found and work.
int (*resolve_early())() {
  int (*by_name)() = nullptr;
  find(&by_name, "getppid");
  const auto by_version =
      reinterpret_cast<int (*)()>(::dlvsym(RTLD_DEFAULT, "getppid", EARLY_OLDEST_VERSION));
  int (*nothing)() = nullptr;
  find(&nothing, "a_function_that_nobody_has");
  find(&early.alloc_by_dlsym, "cuMemAlloc_v2");
  find(&early.free, "cuMemFree_v2");
  early.alloc_by_handle = early.alloc_by_get_proc = early.alloc_by_dlsym;
  const bool right = by_name != nullptr && by_version != nullptr && by_name() == by_version() &&
                     by_name() == ::getppid() && nothing == nullptr;
  return right ? is_right : is_wrong;
}

int early_resolved() __attribute__((ifunc("resolve_early")));
}
