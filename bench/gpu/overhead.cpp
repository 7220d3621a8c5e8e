// Measures the overhead of gpurota for a CUDA program: nanoseconds per driver call, as JSON on
// stdout.
//
// A plain driver-API program, which opens libcuda.so.1 as the CUDA runtime does and needs no
// toolkit. Run it bare and under `gpurota run --memory …` in one session and compare. Also times
// the driver calls that libgpurota itself makes. Kinds are measured alternately, so that drift
// affects all alike; each figure is the median of the repetitions. Usage: `overhead [REPETITIONS]`.
#include "abi/cuda_abi.h"
#include "overhead_families.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace {

constexpr const char* kEmptyKernel =
    ".version 5.0\n.target sm_60\n.address_size 64\n.visible .entry empty() { ret; }\n";

struct Driver {
  CUresult (*init)(unsigned int);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*device_name)(char*, int, CUdevice);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*get_current)(CUcontext*);
  CUresult (*synchronize)();
  CUresult (*alloc)(CUdeviceptr*, size_t);
  CUresult (*free)(CUdeviceptr);
  CUresult (*alloc_async)(CUdeviceptr*, size_t, CUstream);
  CUresult (*free_async)(CUdeviceptr, CUstream);
  CUresult (*mem_info)(size_t*, size_t*);
  CUresult (*stream_create)(CUstream*, unsigned int);
  CUresult (*stream_capturing)(CUstream, CUstreamCaptureStatus*);
  CUresult (*stream_context)(CUstream, CUcontext*);
  CUresult (*default_pool)(CUmemoryPool*, CUdevice);
  CUresult (*pool_attribute)(CUmemoryPool, CUmemPool_attribute, void*);
  CUresult (*pool_set)(CUmemoryPool, CUmemPool_attribute, void*);
  CUresult (*module_load)(CUmodule*, const void*);
  CUresult (*module_function)(CUfunction*, CUmodule, const char*);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     unsigned, CUstream, void**, void**);
};

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "overhead: %s\n", what.c_str());
  std::exit(1);
}

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) die(std::string(what) + ": CUDA error " + std::to_string(result));
}

template <typename F>
void find(void* library, F* out, const char* name) {
  *out = reinterpret_cast<F>(::dlsym(library, name));
  if (*out == nullptr) die(std::string("the driver has no ") + name);
}

Driver open_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) die(::dlerror());
  Driver d{};
  find(library, &d.init, "cuInit");
  find(library, &d.device_get, "cuDeviceGet");
  find(library, &d.device_name, "cuDeviceGetName");
  find(library, &d.retain, "cuDevicePrimaryCtxRetain");
  find(library, &d.set_current, "cuCtxSetCurrent");
  find(library, &d.get_current, "cuCtxGetCurrent");
  find(library, &d.synchronize, "cuCtxSynchronize");
  find(library, &d.alloc, "cuMemAlloc_v2");
  find(library, &d.free, "cuMemFree_v2");
  find(library, &d.alloc_async, "cuMemAllocAsync");
  find(library, &d.free_async, "cuMemFreeAsync");
  find(library, &d.mem_info, "cuMemGetInfo_v2");
  find(library, &d.stream_create, "cuStreamCreate");
  find(library, &d.stream_capturing, "cuStreamIsCapturing");
  find(library, &d.stream_context, "cuStreamGetCtx");
  find(library, &d.default_pool, "cuDeviceGetDefaultMemPool");
  find(library, &d.pool_attribute, "cuMemPoolGetAttribute");
  find(library, &d.pool_set, "cuMemPoolSetAttribute");
  find(library, &d.module_load, "cuModuleLoadData");
  find(library, &d.module_function, "cuModuleGetFunction");
  find(library, &d.launch, "cuLaunchKernel");
  return d;
}

struct Kind {
  const char* name;
  int calls;  // per repetition
  std::function<void()> call;
  std::function<void()> after;  // once per repetition, not timed
  std::vector<double> ns = {};
};

void measure(Kind& kind) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kind.calls; ++i) kind.call();
  const auto end = std::chrono::steady_clock::now();
  kind.ns.push_back(std::chrono::duration<double, std::nano>(end - begin).count() / kind.calls);
  if (kind.after) kind.after();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Kind linear(const Driver& d, const char* name, int calls, size_t bytes) {
  return {name, calls,
          [&d, bytes] {
            CUdeviceptr p = 0;
            check(d.alloc(&p, bytes), "cuMemAlloc");
            check(d.free(p), "cuMemFree");
          },
          nullptr};
}

Kind async(const Driver& d, CUstream stream, const char* name, size_t bytes) {
  return {name, 2000,
          [&d, stream, bytes] {
            CUdeviceptr p = 0;
            check(d.alloc_async(&p, bytes, stream), "cuMemAllocAsync");
            check(d.free_async(p, stream), "cuMemFreeAsync");
          },
          [&d] { check(d.synchronize(), "cuCtxSynchronize"); }};
}

struct Setup {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUmemoryPool pool = nullptr;
  CUfunction kernel = nullptr;  // nullptr: this driver cannot load PTX
  bool has_pools = false;
};

Setup set_up(const Driver& d) {
  Setup s;
  check(d.init(0), "cuInit");
  check(d.device_get(&s.device, 0), "cuDeviceGet");
  check(d.retain(&s.context, s.device), "cuDevicePrimaryCtxRetain");
  check(d.set_current(s.context), "cuCtxSetCurrent");
  check(d.stream_create(&s.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  s.has_pools = d.default_pool(&s.pool, s.device) == CUDA_SUCCESS;
  cuuint64_t keep = UINT64_MAX;  // otherwise each synchronisation gives the pool's memory back
  if (s.has_pools) d.pool_set(s.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  CUmodule module = nullptr;
  const bool runs =
      d.module_load(&module, kEmptyKernel) == CUDA_SUCCESS &&
      d.module_function(&s.kernel, module, "empty") == CUDA_SUCCESS &&
      d.launch(s.kernel, 1, 1, 1, 1, 1, 1, 0, s.stream, nullptr, nullptr) == CUDA_SUCCESS;
  if (!runs) s.kernel = nullptr;
  return s;
}

// Driver calls that libgpurota makes itself, and one call that libgpurota answers itself.
void add_queries(const Driver& d, const Setup& s, std::vector<Kind>* kinds) {
  kinds->push_back({"mem_get_info", 200,
                    [&d] {
                      size_t free_bytes = 0;
                      size_t total = 0;
                      check(d.mem_info(&free_bytes, &total), "cuMemGetInfo");
                    },
                    nullptr});
  kinds->push_back({"probe_ctx_get_current", 20000,
                    [&d] {
                      CUcontext context = nullptr;
                      d.get_current(&context);
                    },
                    nullptr});
  kinds->push_back({"probe_stream_is_capturing", 20000,
                    [&d, &s] {
                      CUstreamCaptureStatus status{};
                      d.stream_capturing(s.stream, &status);
                    },
                    nullptr});
  kinds->push_back({"probe_stream_get_ctx", 20000,
                    [&d, &s] {
                      CUcontext context = nullptr;
                      d.stream_context(s.stream, &context);
                    },
                    nullptr});
  kinds->push_back({"probe_pool_reserved", 20000,
                    [&d, &s] {
                      cuuint64_t reserved = 0;
                      d.pool_attribute(s.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
                    },
                    nullptr});
}

std::vector<Kind> make_kinds(const Driver& d, const Setup& s) {
  std::vector<Kind> kinds;
  kinds.push_back(linear(d, "alloc_free_64KiB", 200, size_t{64} << 10));
  kinds.push_back(linear(d, "alloc_free_2MiB", 200, size_t{2} << 20));
  kinds.push_back(linear(d, "alloc_free_256MiB", 20, size_t{256} << 20));
  if (s.has_pools) {
    kinds.push_back(async(d, s.stream, "async_pair_64KiB", size_t{64} << 10));
    kinds.push_back(async(d, s.stream, "async_pair_2MiB", size_t{2} << 20));
  }
  if (s.kernel != nullptr) {
    kinds.push_back({"launch_empty_kernel", 2000,
                     [&d, &s] {
                       check(d.launch(s.kernel, 1, 1, 1, 1, 1, 1, 0, s.stream, nullptr, nullptr),
                             "cuLaunchKernel");
                     },
                     [&d] { check(d.synchronize(), "cuCtxSynchronize"); }});
  }
  families::add_all(::dlopen("libcuda.so.1", RTLD_NOW),
                    [&](const char* name, int calls, std::function<void()> call) {
                      kinds.push_back({name, calls, std::move(call), nullptr});
                    });
  add_queries(d, s, &kinds);
  return kinds;
}

void print(const Driver& d, const Setup& s, const std::vector<Kind>& kinds) {
  char name[128] = "";
  d.device_name(name, sizeof(name), s.device);
  size_t free_bytes = 0;
  size_t total = 0;
  d.mem_info(&free_bytes, &total);
  const char* lease = std::getenv("GPUROTA_LEASE");
  std::printf("{\n  \"gpu\": \"%s\",\n  \"lease\": %s,\n  \"total_bytes\": %zu,\n  \"ns\": {\n",
              name, lease != nullptr ? "true" : "false", total);
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::printf("    \"%s\": %.1f%s\n", kinds[i].name, median(kinds[i].ns),
                i + 1 < kinds.size() ? "," : "");
  }
  std::printf("  }\n}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  const Driver d = open_driver();
  const Setup s = set_up(d);
  std::vector<Kind> kinds = make_kinds(d, s);
  for (Kind& kind : kinds) measure(kind);
  for (Kind& kind : kinds) kind.ns.clear();  // the first round only warmed up
  for (int i = 0; i < repetitions; ++i) {
    for (Kind& kind : kinds) measure(kind);
  }
  print(d, s, kinds);
  return 0;
}
