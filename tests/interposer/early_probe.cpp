// early_probe [LIBRARY]: checks functions of the driver that were looked up while the program was
// loaded, or while LIBRARY is opened. Each function enforces the lease's limit of 256 MiB.
#include "early.h"
#include "probe.h"

#include <vector>

#include <dlfcn.h>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

template <typename F>
F* find(const char* name) {
  const auto found = reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
  EXPECT(found != nullptr);
  return found;
}

void make_context() {
  CUcontext context = nullptr;
  EXPECT(find<CUresult(unsigned int)>("cuInit")(0) == CUDA_SUCCESS);
  const auto create = find<CUresult(CUcontext*, unsigned int, CUdevice)>("cuCtxCreate_v2");
  EXPECT(create(&context, 0, 0) == CUDA_SUCCESS);
}

template <typename Alloc>
std::vector<CUdeviceptr> fill(Alloc alloc) {
  EXPECT(alloc != nullptr);
  std::vector<CUdeviceptr> had;
  CUdeviceptr p = 0;
  while (had.size() < 512 && alloc(&p, 2 * kMiB) == CUDA_SUCCESS) had.push_back(p);
  return had;
}

template <typename Alloc>
void hold_to_limit(const Early& found, Alloc alloc) {
  const std::vector<CUdeviceptr> had = fill(alloc);
  EXPECT(had.size() == 128);
  for (const CUdeviceptr each : had) EXPECT(found.free(each) == CUDA_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '\0') EXPECT(::dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) != nullptr);
  auto* found = static_cast<Early*>(::dlsym(RTLD_DEFAULT, "early"));
  EXPECT(found != nullptr);
  const auto* used = static_cast<int (*const*)()>(::dlsym(RTLD_DEFAULT, "early_used"));
  EXPECT(used == nullptr || (*used)() == 1);  // from early_ifunc.cpp
  make_context();
  hold_to_limit(*found, found->alloc_by_dlsym);
  hold_to_limit(*found, found->alloc_by_handle);
  hold_to_limit(*found, found->alloc_by_get_proc);
  EXPECT(fill(found->alloc_by_dlsym).size() == 128);
  found->exhausted = true;
  return 0;
}
