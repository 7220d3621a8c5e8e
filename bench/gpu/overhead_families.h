// The rarer families of overhead.cpp: one pair of calls for each, looked up as a program does.
// Kinds whose functions the driver lacks are skipped.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

#include <functional>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace families {

inline void must(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "overhead: %s: error %d\n", what, result);
  std::exit(1);
}

template <typename F>
F* get(void* library, const char* name) {
  return library != nullptr ? reinterpret_cast<F*>(::dlsym(library, name)) : nullptr;
}

// add(name, calls, call): name and calls as in Kind in overhead.cpp.
using Add = std::function<void(const char*, int, std::function<void()>)>;

inline void add_linear(void* cuda, const Add& add) {
  const auto pitch =
      get<CUresult(CUdeviceptr*, size_t*, size_t, size_t, unsigned)>(cuda, "cuMemAllocPitch_v2");
  const auto managed = get<CUresult(CUdeviceptr*, size_t, unsigned)>(cuda, "cuMemAllocManaged");
  const auto free = get<CUresult(CUdeviceptr)>(cuda, "cuMemFree_v2");
  if (free == nullptr) return;
  if (pitch != nullptr) {
    add("pitch_free_1MiB", 100, [=] {
      CUdeviceptr p = 0;
      size_t got = 0;
      must(pitch(&p, &got, 4096, 256, 4), "cuMemAllocPitch");
      must(free(p), "cuMemFree");
    });
  }
  if (managed != nullptr) {
    add("managed_free_2MiB", 100, [=] {
      CUdeviceptr p = 0;
      must(managed(&p, size_t{2} << 20, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
      must(free(p), "cuMemFree");
    });
  }
}

inline void add_vmm(void* cuda, const Add& add) {
  const auto create =
      get<CUresult(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                   unsigned long long)>(cuda, "cuMemCreate");
  const auto release = get<CUresult(CUmemGenericAllocationHandle)>(cuda, "cuMemRelease");
  const auto reserve = get<CUresult(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long)>(
      cuda, "cuMemAddressReserve");
  const auto map =
      get<CUresult(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)>(
          cuda, "cuMemMap");
  const auto unmap = get<CUresult(CUdeviceptr, size_t)>(cuda, "cuMemUnmap");
  if (!create || !release || !reserve || !map || !unmap) return;
  constexpr size_t kSize = size_t{2} << 20;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  add("vmm_create_release_2MiB", 100, [=] {
    CUmemGenericAllocationHandle handle = 0;
    must(create(&handle, kSize, &prop, 0), "cuMemCreate");
    must(release(handle), "cuMemRelease");
  });
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  must(reserve(&range, kSize, 0, 0, 0), "cuMemAddressReserve");
  must(create(&handle, kSize, &prop, 0), "cuMemCreate");
  add("vmm_map_unmap_2MiB", 200, [=] {
    must(map(range, kSize, 0, handle, 0), "cuMemMap");
    must(unmap(range, kSize), "cuMemUnmap");
  });
}

inline void add_rest(void* cuda, const Add& add) {
  const auto make_array =
      get<CUresult(CUarray*, const CUDA_ARRAY_DESCRIPTOR*)>(cuda, "cuArrayCreate_v2");
  const auto drop_array = get<CUresult(CUarray)>(cuda, "cuArrayDestroy");
  if (make_array != nullptr && drop_array != nullptr) {
    add("array_create_destroy_1MiB", 100, [=] {
      CUDA_ARRAY_DESCRIPTOR shape{};
      shape.Width = 512;
      shape.Height = 512;
      shape.Format = CU_AD_FORMAT_FLOAT;
      shape.NumChannels = 1;
      CUarray array = nullptr;
      must(make_array(&array, &shape), "cuArrayCreate");
      must(drop_array(array), "cuArrayDestroy");
    });
  }
  const auto total = get<CUresult(size_t*, CUdevice)>(cuda, "cuDeviceTotalMem_v2");
  if (total != nullptr) {
    add("device_total_mem", 2000, [=] {
      size_t bytes = 0;
      must(total(&bytes, 0), "cuDeviceTotalMem");
    });
  }
  add("dlsym_of_the_driver", 2000,
      [=] { must(::dlsym(cuda, "cuMemAlloc_v2") == nullptr, "dlsym"); });
  add("dlsym_of_something_else", 2000,
      [=] { must(::dlsym(RTLD_DEFAULT, "malloc") == nullptr, "dlsym"); });
  const auto ask =
      get<CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)>(
          cuda, "cuGetProcAddress_v2");
  if (ask != nullptr) {
    for (const char* name : {"cuMemAlloc", "cuMemcpy"}) {
      add(std::string(name) == "cuMemAlloc" ? "get_proc_address_hooked" : "get_proc_address_passed",
          1000, [=] {
            void* found = nullptr;
            CUdriverProcAddressQueryResult status{};
            must(ask(name, &found, 12000, 0, &status), "cuGetProcAddress");
          });
    }
  }
}

inline void add_nvml(const Add& add) {
  void* nvml = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  const auto init = get<nvmlReturn_t()>(nvml, "nvmlInit_v2");
  const auto by_index =
      get<nvmlReturn_t(unsigned, nvmlDevice_t*)>(nvml, "nvmlDeviceGetHandleByIndex_v2");
  const auto memory =
      get<nvmlReturn_t(nvmlDevice_t, nvmlMemory_t*)>(nvml, "nvmlDeviceGetMemoryInfo");
  const auto list = get<nvmlReturn_t(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*)>(
      nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
  nvmlDevice_t device = nullptr;
  if (!init || !by_index || !memory || !list || init() != NVML_SUCCESS) return;
  if (by_index(0, &device) != NVML_SUCCESS) return;
  add("nvml_memory_info", 200, [=] {
    nvmlMemory_t info{};
    must(memory(device, &info), "nvmlDeviceGetMemoryInfo");
  });
  add("nvml_process_list", 200, [=] {
    nvmlProcessInfo_v2_t processes[64];
    unsigned count = 64;
    must(list(device, &count, processes), "nvmlDeviceGetComputeRunningProcesses");
  });
}

inline void add_all(void* cuda, const Add& add) {
  add_linear(cuda, add);
  add_vmm(cuda, add);
  add_rest(cuda, add);
  add_nvml(add);
}

}  // namespace families
