// Entry points by version, several processes, fork, and what NVML reports about them.
#include "tests/driver/api.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void* symbol(const char* name) { return ::dlsym(driver_library(), name); }

void* entry(const char* name, int version, cuuint64_t flags, int* status) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult code = cuGetProcAddress_v2(name, &function, version, flags, &result);
  *status = code == CUDA_SUCCESS ? static_cast<int>(result) : -static_cast<int>(code);
  return function;
}

// NVML of the same machine, for this process and the GPU with ordinal 0.
class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr) return;
    load(init_, "nvmlInit_v2");
    load(by_uuid_, "nvmlDeviceGetHandleByUUID");
    load(processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
    CUuuid id = {};
    char text[64];
    if (init_ == nullptr || init_() != NVML_SUCCESS) return;
    if (cuDeviceGetUuid_v2(&id, 0) != CUDA_SUCCESS) return;
    const auto* b = reinterpret_cast<const unsigned char*>(id.bytes);
    std::snprintf(text, sizeof text,
                  "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                  b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                  b[14], b[15]);
    if (by_uuid_(text, &device_) != NVML_SUCCESS) device_ = nullptr;
  }
  bool works() const { return device_ != nullptr; }
  // Bytes of one process; -1 if it is not listed.
  long long used_by(pid_t pid) const {
    std::vector<nvmlProcessInfo_v2_t> list(256);
    auto count = static_cast<unsigned>(list.size());
    if (processes_(device_, &count, list.data()) != NVML_SUCCESS) return -1;
    for (unsigned i = 0; i < count; ++i) {
      if (list[i].pid == static_cast<unsigned>(pid)) {
        return static_cast<long long>(list[i].usedGpuMemory);
      }
    }
    return -1;
  }

 private:
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
  }
  void* library_;
  nvmlDevice_t device_ = nullptr;
  nvmlReturn_t (*init_)() = nullptr;
  nvmlReturn_t (*by_uuid_)(const char*, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*processes_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*) = nullptr;
};

}  // namespace

DRIVER_CHECK(a_child_made_before_cuInit_uses_the_driver_as_its_own) {
  const int code = in_child([] {
    const WithContext with;
    CUdeviceptr p = 0;
    std::uint32_t word = 0;
    const bool good = cuMemAlloc_v2(&p, kMiB) == CUDA_SUCCESS &&
                      cuMemsetD32_v2(p, 17, kMiB / 4) == CUDA_SUCCESS &&
                      cuMemcpyDtoH_v2(&word, p, 4) == CUDA_SUCCESS && word == 17;
    return good ? 0 : 1;
  });
  EXPECT_SAME(code, 0);
}

// Two processes share an event, through which one process waits until the work of the other is
// over.
struct Shared {
  CUipcEventHandle handle;
  std::atomic<bool> is_given, work_done;
};

// Records the event after work that takes a while, passes the handle on, and waits until the work
// is over.
int record_for_another(Shared& shared, int until) {
  WithContext with;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const unsigned flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
  bool good = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
              cuEventCreate(&event, CU_EVENT_INTERPROCESS) == CUDA_ERROR_INVALID_VALUE &&
              cuEventCreate(&event, flags) == CUDA_SUCCESS &&
              cuIpcGetEventHandle(&shared.handle, event) == CUDA_SUCCESS &&
              spin(with.kernel("spin_us"), stream, 300'000) == CUDA_SUCCESS &&
              cuLaunchHostFunc(
                  stream, [](void* p) { static_cast<Shared*>(p)->work_done = true; }, &shared) ==
                  CUDA_SUCCESS &&
              cuEventRecord(event, stream) == CUDA_SUCCESS;
  shared.is_given = true;
  char byte = 0;
  good &= ::read(until, &byte, 1) == 0 && cuStreamSynchronize(stream) == CUDA_SUCCESS;
  return good ? 0 : 1;
}

int wait_for_another(Shared& shared) {
  const WithContext with;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const bool good = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                    cuIpcOpenEventHandle(&event, shared.handle) == CUDA_SUCCESS &&
                    cuStreamWaitEvent(stream, event, 0) == CUDA_SUCCESS &&
                    cuStreamSynchronize(stream) == CUDA_SUCCESS && shared.work_done &&
                    cuEventSynchronize(event) == CUDA_SUCCESS &&
                    cuEventQuery(event) == CUDA_SUCCESS && cuEventDestroy_v2(event) == CUDA_SUCCESS;
  return good ? 0 : 1;
}

DRIVER_CHECK(an_event_of_another_process_is_waited_for) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_SAME(memory != MAP_FAILED, true);
  auto& shared = *static_cast<Shared*>(memory);
  int ends[2];
  EXPECT_SAME(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t recorder = ::fork();
  if (recorder == 0) {
    ::close(ends[1]);
    ::_exit(record_for_another(shared, ends[0]));
  }
  const pid_t waiter = ::fork();
  if (waiter == 0) {
    while (!shared.is_given) ::usleep(1000);
    ::_exit(wait_for_another(shared));
  }
  int waited = -1, recorded = -1;
  ::waitpid(waiter, &waited, 0);
  ::close(ends[1]);
  ::close(ends[0]);
  ::waitpid(recorder, &recorded, 0);
  ::munmap(memory, sizeof(Shared));
  EXPECT_SAME(waited, 0);
  EXPECT_SAME(recorded, 0);
}

DRIVER_CHECK(an_entry_point_is_the_newest_that_the_version_allows) {
  int status = 0;
  EXPECT_TRUE(entry("cuMemAlloc", 12000, 0, &status) == symbol("cuMemAlloc_v2"));
  EXPECT_SAME(status, static_cast<int>(CU_GET_PROC_ADDRESS_SUCCESS));
  EXPECT_TRUE(entry("cuCtxCreate", 11030, 0, &status) == symbol("cuCtxCreate_v2"));
  EXPECT_TRUE(entry("cuCtxCreate", 11040, 0, &status) == symbol("cuCtxCreate_v3"));
  EXPECT_TRUE(entry("cuGetProcAddress", 11030, 0, &status) == symbol("cuGetProcAddress"));
  EXPECT_TRUE(entry("cuGetProcAddress", 12000, 0, &status) == symbol("cuGetProcAddress_v2"));
  EXPECT_TRUE(entry("cuMemAllocAsync", 11010, 0, &status) == nullptr);
  EXPECT_SAME(status, static_cast<int>(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
  EXPECT_TRUE(entry("cuNoSuchFunction", 12000, 0, &status) == nullptr);
  EXPECT_SAME(status, static_cast<int>(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
}

DRIVER_CHECK(a_flag_asks_for_the_per_thread_stream_variant) {
  int status = 0;
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_TRUE(entry("cuLaunchKernel", 12000, kPerThread, &status) == symbol("cuLaunchKernel_ptsz"));
  EXPECT_TRUE(entry("cuLaunchKernel", 12000, 0, &status) == symbol("cuLaunchKernel"));
  EXPECT_TRUE(entry("cuMemcpyHtoD", 12000, kPerThread, &status) == symbol("cuMemcpyHtoD_v2_ptds"));
  EXPECT_TRUE(entry("cuMemAlloc", 12000, kPerThread, &status) == symbol("cuMemAlloc_v2"));
}

DRIVER_CHECK(the_first_form_of_cuGetProcAddress_says_not_found) {
  void* function = nullptr;
  EXPECT_OK(cuGetProcAddress("cuInit", &function, 11030, 0));
  EXPECT_TRUE(function == symbol("cuInit"));
  EXPECT_CODE(cuGetProcAddress("cuNoSuchFunction", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
}

DRIVER_CHECK(the_child_of_an_initialised_process_cannot_use_the_driver) {
  EXPECT_OK(cuInit(0));
  const int code = in_child([] { return static_cast<int>(cuInit(0)); });
  EXPECT_SAME(code, static_cast<int>(CUDA_ERROR_NOT_INITIALIZED));
  int count = 0;
  EXPECT_OK(cuDeviceGetCount(&count));
}

DRIVER_CHECK(contexts_stack_per_thread) {
  EXPECT_OK(cuInit(0));
  CUcontext one = nullptr, two = nullptr, top = nullptr;
  EXPECT_OK(cuCtxCreate_v2(&one, 0, 0));
  EXPECT_OK(cuCtxCreate_v2(&two, 0, 0));
  EXPECT_OK(cuCtxGetCurrent(&top));
  EXPECT_TRUE(top == two);
  EXPECT_OK(cuCtxPopCurrent_v2(&top));
  EXPECT_OK(cuCtxGetCurrent(&top));
  EXPECT_TRUE(top == one);
  EXPECT_OK(cuCtxDestroy_v2(two));
  EXPECT_OK(cuCtxDestroy_v2(one));
  EXPECT_OK(cuCtxGetCurrent(&top));
  EXPECT_TRUE(top == nullptr);
  EXPECT_CODE(cuCtxPopCurrent_v2(&top), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_CHECK(the_primary_context_is_counted) {
  EXPECT_OK(cuInit(0));
  CUcontext one = nullptr, two = nullptr;
  unsigned flags = 0;
  int active = 0;
  EXPECT_OK(cuDevicePrimaryCtxRetain(&one, 0));
  EXPECT_OK(cuDevicePrimaryCtxRetain(&two, 0));
  EXPECT_TRUE(one == two);
  EXPECT_OK(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_SAME(active, 1);
  EXPECT_OK(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_SAME(active, 0);
  EXPECT_CODE(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

DRIVER_CHECK(nvml_counts_a_process_by_its_context_and_its_memory) {
  const WithContext with;
  const Nvml nvml;
  if (!nvml.works()) return skip_check("no usable NVML");
  const long long context = nvml.used_by(::getpid());
  if (context < 0 && !is_simulated()) return skip_check("NVML sees other process ids than we do");
  EXPECT_TRUE(context > static_cast<long long>(64 * kMiB));
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 128 * kMiB));
  EXPECT_SAME(nvml.used_by(::getpid()) - context, static_cast<long long>(128 * kMiB));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_SAME(nvml.used_by(::getpid()), context);
}
