// A program that queries GPUs through NVML, as nvidia-smi, pynvml and frameworks do. Prints each
// answer on one line: "memory GPU VERSION total free used", "processes GPU KIND VERSION pid…".
//
//   nvml_probe LOOKUP [cuda]    LOOKUP: "linked", or how to ask dlsym: "handle", "default", "next"
//
// With `cuda` the probe first takes 64 MiB on GPU 0, prints "cuda total free", and waits for a line
// at the end.
#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

extern "C" {
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out);
#define LISTS(kind)                                                              \
  nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses(nvmlDevice_t, unsigned*,    \
                                                     nvmlProcessInfo_v1_t*);     \
  nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v2(nvmlDevice_t, unsigned*, \
                                                        nvmlProcessInfo_v2_t*);  \
  nvmlReturn_t nvmlDeviceGet##kind##RunningProcesses_v3(nvmlDevice_t, unsigned*, \
                                                        nvmlProcessInfo_v2_t*);
LISTS(Compute)
LISTS(Graphics)
LISTS(MPSCompute)
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t, nvmlProcessDetailList_v1_t*);
}

namespace {

std::string lookup;
void* library = nullptr;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "nvml_probe: %s\n", what);
  std::exit(1);
}

void* ask(const char* name) {
  if (lookup == "default") return ::dlsym(RTLD_DEFAULT, name);
  if (lookup == "next") return ::dlsym(RTLD_NEXT, name);
  return ::dlsym(library, name);
}

template <typename F>
F* find(F* linked, const char* name) {
  if (lookup == "linked") return linked;
  void* found = ask(name);
  if (found == nullptr) fail(name);
  return reinterpret_cast<F*>(found);
}
#define FIND(name) find(&(name), #name)

void check(nvmlReturn_t result, const char* what) {
  if (result != NVML_SUCCESS) fail(what);
}

template <typename Info, typename F>
void list(unsigned gpu, nvmlDevice_t device, const char* kind, int version, F* function) {
  unsigned count = 0;
  const nvmlReturn_t sized = function(device, &count, nullptr);
  if (sized != NVML_SUCCESS && sized != NVML_ERROR_INSUFFICIENT_SIZE) fail("the size of a list");
  if ((sized == NVML_SUCCESS) != (count == 0)) fail("the size of an empty list");
  std::vector<Info> processes(count + 8);
  count = static_cast<unsigned>(processes.size());
  check(function(device, &count, processes.data()), "a process list");
  std::printf("processes %u %s %d", gpu, kind, version);
  for (unsigned i = 0; i < count; ++i) std::printf(" %u", processes[i].pid);
  std::printf("\n");
}

void details(unsigned gpu, nvmlDevice_t device) {
  nvmlProcessDetail_v1_t processes[16];
  nvmlProcessDetailList_v1_t all{NVML_PROCESS_DETAIL_LIST_V1, 0, 16, processes};
  check(FIND(nvmlDeviceGetRunningProcessDetailList)(device, &all), "the detailed list");
  std::printf("processes %u Detail 1", gpu);
  for (unsigned i = 0; i < all.numProcArrayEntries; ++i) std::printf(" %u", processes[i].pid);
  std::printf("\n");
}

#define SHOW_LISTS(kind)                                                                          \
  list<nvmlProcessInfo_v1_t>(gpu, device, #kind, 1, FIND(nvmlDeviceGet##kind##RunningProcesses)); \
  list<nvmlProcessInfo_v2_t>(gpu, device, #kind, 2,                                               \
                             FIND(nvmlDeviceGet##kind##RunningProcesses_v2));                     \
  list<nvmlProcessInfo_v2_t>(gpu, device, #kind, 3, FIND(nvmlDeviceGet##kind##RunningProcesses_v3))

void show(unsigned gpu) {
  nvmlDevice_t device = nullptr;
  check(FIND(nvmlDeviceGetHandleByIndex_v2)(gpu, &device), "a handle");
  nvmlMemory_t v1{};
  check(FIND(nvmlDeviceGetMemoryInfo)(device, &v1), "memory");
  std::printf("memory %u 1 %llu %llu %llu\n", gpu, v1.total, v1.free, v1.used);
  nvmlMemory_v2_t v2{};
  if (FIND(nvmlDeviceGetMemoryInfo_v2)(device, &v2) != NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
    fail("a struct without its version was taken");
  }
  v2.version = NVML_MEMORY_V2;
  check(FIND(nvmlDeviceGetMemoryInfo_v2)(device, &v2), "memory v2");
  std::printf("memory %u 2 %llu %llu %llu\n", gpu, v2.total, v2.free, v2.used + v2.reserved);
  SHOW_LISTS(Compute);
  SHOW_LISTS(Graphics);
  SHOW_LISTS(MPSCompute);
  details(gpu, device);
}

template <typename F>
F* cuda(void* driver, const char* name) {
  void* found = ::dlsym(driver, name);
  if (found == nullptr) fail(name);
  return reinterpret_cast<F*>(found);
}

void use_cuda() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) fail("libcuda.so.1");
  CUcontext context = nullptr;
  CUdeviceptr p = 0;
  size_t free_bytes = 0;
  size_t total = 0;
  if (cuda<CUresult(unsigned)>(driver, "cuInit")(0) != CUDA_SUCCESS ||
      cuda<CUresult(CUcontext*, unsigned, CUdevice)>(driver, "cuCtxCreate_v2")(&context, 0, 0) !=
          CUDA_SUCCESS ||
      cuda<CUresult(CUdeviceptr*, size_t)>(driver, "cuMemAlloc_v2")(&p, size_t{64} << 20) !=
          CUDA_SUCCESS ||
      cuda<CUresult(size_t*, size_t*)>(driver, "cuMemGetInfo_v2")(&free_bytes, &total) !=
          CUDA_SUCCESS) {
    fail("cuda");
  }
  std::printf("cuda %zu %zu\n", total, free_bytes);
}

}  // namespace

int main(int argc, char** argv) {
  lookup = argc > 1 ? argv[1] : "handle";
  const bool with_cuda = argc > 2;
  library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail("libnvidia-ml.so.1");
  check(FIND(nvmlInit_v2)(), "nvmlInit");
  if (with_cuda) use_cuda();
  unsigned count = 0;
  check(FIND(nvmlDeviceGetCount_v2)(&count), "the number of GPUs");
  for (unsigned gpu = 0; gpu < count; ++gpu) show(gpu);
  std::printf("end\n");
  std::fflush(stdout);
  char c = 0;
  while (with_cuda && ::read(0, &c, 1) == 1 && c != '\n') {
  }
  return 0;
}
