// A probe that opens libcuda.so.1 itself. PROBE_LOOKUP selects how it looks up functions: "dlsym"
// and "dlsym-old" (glibc's two versions of it), "default" (RTLD_DEFAULT), "next" (RTLD_NEXT),
// "proc1" and "proc2" (cuGetProcAddress with 4 and 5 arguments, found as the CUDA runtime finds
// it), "ptds" (proc2, with the flag for per-thread default streams).
#include "probe.h"

#include <cstring>
#include <string>

#include <dlfcn.h>

Functions cu;

extern "C" void* dlsym_new(void* handle, const char* name);
extern "C" void* dlsym_old(void* handle, const char* name);
#if defined(__x86_64__)
__asm__(".symver dlsym_old, dlsym@GLIBC_2.2.5");
#else
__asm__(".symver dlsym_old, dlsym@GLIBC_2.17");
#endif
__asm__(".symver dlsym_new, dlsym@GLIBC_2.34");

namespace {

using GetProcV1 = CUresult (*)(const char*, void**, int, cuuint64_t);
using GetProcV2 = CUresult (*)(const char*, void**, int, cuuint64_t,
                               CUdriverProcAddressQueryResult*);

std::string lookup;
void* library = nullptr;
void* get_proc = nullptr;

void* ask(const char* symbol, const char* base) {
  if (lookup == "dlsym") return dlsym_new(library, symbol);
  if (lookup == "dlsym-old") return dlsym_old(library, symbol);
  if (lookup == "default") return ::dlsym(RTLD_DEFAULT, symbol);
  if (lookup == "next") return ::dlsym(RTLD_NEXT, symbol);
  void* found = nullptr;
  // cuCtxCreate is looked up in the form of the 3.2 ABI, everything else in the newest of 12.0.
  const int version = std::strcmp(base, "cuCtxCreate") == 0 ? 3020 : 12000;
  if (lookup == "proc1") {
    EXPECT(reinterpret_cast<GetProcV1>(get_proc)(base, &found, version, 0) == CUDA_SUCCESS);
  } else {
    const cuuint64_t flags = lookup == "ptds" ? 2 : 0;
    CUdriverProcAddressQueryResult status{};
    EXPECT(reinterpret_cast<GetProcV2>(get_proc)(base, &found, version, flags, &status) ==
           CUDA_SUCCESS);
  }
  return found;
}

// As the CUDA runtime does: finds cuGetProcAddress_v2 with dlsym, and asks it for
// "cuGetProcAddress". The requested version decides which form of that function is returned.
void* find_get_proc() {
  const auto first = reinterpret_cast<GetProcV2>(dlsym_new(library, "cuGetProcAddress_v2"));
  EXPECT(first != nullptr);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  EXPECT(first("cuGetProcAddress", &found, lookup == "proc1" ? 11030 : 12000, 0, &status) ==
         CUDA_SUCCESS);
  EXPECT(found != nullptr);
  return found;
}

}  // namespace

void find_functions() {
  const char* wanted = std::getenv("PROBE_LOOKUP");
  lookup = wanted != nullptr ? wanted : "dlsym";
  library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  EXPECT(library != nullptr);
  if (lookup.starts_with("p")) get_proc = find_get_proc();
#define PROBE_FIND(field, symbol, base, result, parameters)            \
  cu.field = reinterpret_cast<decltype(cu.field)>(ask(#symbol, base)); \
  EXPECT(cu.field != nullptr);
  PROBE_FUNCTIONS(PROBE_FIND)
}
