// Calls about memory, pools and arrays.
#include "tests/driver/captures/scene.h"

#include <cstdint>
#include <iterator>

namespace captures {
namespace {

void with_pointer(Scene& s) { s.need(cuMemAlloc_v2(&s.pointer, kBytes)); }

void with_host_memory(Scene& s) { s.need(cuMemHostAlloc(&s.host_memory, kBytes, 0)); }

void with_registered(Scene& s) {
  s.need(cuMemHostRegister_v2(s.pageable, kBytes, 0));
  s.registered = s.pageable;
}

CUmemPoolProps pool_properties() {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

void with_pool(Scene& s) {
  const CUmemPoolProps properties = pool_properties();
  s.need(cuMemPoolCreate(&s.pool, &properties));
}

CUresult export_pool(Scene& s) {
  return cuMemPoolExportToShareableHandle(&s.descriptor, s.pool,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

void with_exported_pool(Scene& s) {
  with_pool(s);
  s.need(export_pool(s));
}

void* as_handle(int descriptor) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
}

constexpr CUDA_ARRAY_DESCRIPTOR kShape = {64, 64, CU_AD_FORMAT_FLOAT, 1};

CUDA_ARRAY3D_DESCRIPTOR shape(unsigned flags) { return {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, flags}; }

CUresult make_array(Scene& s, unsigned flags) {
  const CUDA_ARRAY3D_DESCRIPTOR wanted = shape(flags);
  return cuArray3DCreate_v2(&s.array, &wanted);
}

CUresult make_mipmap(Scene& s, unsigned flags) {
  const CUDA_ARRAY3D_DESCRIPTOR wanted = shape(flags);
  return cuMipmappedArrayCreate(&s.mipmap, &wanted, 2);
}

void with_array(Scene& s) { s.need(make_array(s, 0)); }
void with_deferred_array(Scene& s) { s.need(make_array(s, CUDA_ARRAY3D_DEFERRED_MAPPING)); }
void with_mipmap(Scene& s) { s.need(make_mipmap(s, 0)); }
void with_deferred_mipmap(Scene& s) { s.need(make_mipmap(s, CUDA_ARRAY3D_DEFERRED_MAPPING)); }

CUresult ask_two_attributes(Scene& s) {
  int type = 0;
  CUcontext context = nullptr;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* out[] = {&type, &context};
  return cuPointerGetAttributes(2, which, out, s.memory);
}

CUDA_MEMCPY2D rows(const Scene& s) {
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = s.memory;
  copy.dstDevice = s.memory + kBytes / 2;
  copy.srcPitch = copy.dstPitch = 64;
  copy.WidthInBytes = 64;
  copy.Height = 4;
  return copy;
}

CUDA_MEMCPY3D box(const Scene& s) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = s.memory;
  copy.dstDevice = s.memory + kBytes / 2;
  copy.srcPitch = copy.dstPitch = 64;
  copy.srcHeight = copy.dstHeight = 4;
  copy.WidthInBytes = 64;
  copy.Height = 4;
  copy.Depth = 2;
  return copy;
}

const Call kLinear[] = {
    {"cuMemGetInfo_v2",
     "-",
     {},
     [](Scene&) {
       std::size_t free = 0, total = 0;
       return cuMemGetInfo_v2(&free, &total);
     }},
    {"cuMemAlloc_v2", "-", {}, [](Scene& s) { return cuMemAlloc_v2(&s.pointer, kBytes); }},
    {"cuMemAllocPitch_v2",
     "-",
     {},
     [](Scene& s) {
       std::size_t pitch = 0;
       return cuMemAllocPitch_v2(&s.pointer, &pitch, 64, 64, 4);
     }},
    {"cuMemAllocManaged",
     "-",
     {},
     [](Scene& s) { return cuMemAllocManaged(&s.pointer, kBytes, CU_MEM_ATTACH_GLOBAL); }},
    {"cuMemFree_v2", "linear memory", with_pointer,
     [](Scene& s) { return gone(s.pointer, cuMemFree_v2(s.pointer)); }},
    {"cuMemFree_v2",
     "memory of the capture",
     {},
     [](Scene& s) { return cuMemFree_v2(s.graph_pointer); },
     [](Scene& s) { s.need(cuMemAllocAsync(&s.graph_pointer, kBytes, s.capturing)); }},
    {"cuMemGetAddressRange_v2",
     "-",
     {},
     [](Scene& s) {
       CUdeviceptr base = 0;
       std::size_t size = 0;
       return cuMemGetAddressRange_v2(&base, &size, s.memory);
     }},
    {"cuPointerGetAttribute",
     "device memory",
     {},
     [](Scene& s) {
       int type = 0;
       return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s.memory);
     }},
    {"cuPointerGetAttribute",
     "memory of the capture",
     {},
     [](Scene& s) {
       int type = 0;
       return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s.graph_pointer);
     },
     [](Scene& s) { s.need(cuMemAllocAsync(&s.graph_pointer, kBytes, s.capturing)); }},
    {"cuPointerGetAttributes", "-", {}, ask_two_attributes},
    {"cuPointerSetAttribute", "synchronous copies", with_pointer,
     [](Scene& s) {
       const int on = 1;
       return cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, s.pointer);
     }},
};

const Call kHost[] = {
    {"cuMemHostAlloc", "-", {}, [](Scene& s) { return cuMemHostAlloc(&s.host_memory, kBytes, 0); }},
    {"cuMemAllocHost_v2",
     "-",
     {},
     [](Scene& s) { return cuMemAllocHost_v2(&s.host_memory, kBytes); }},
    {"cuMemFreeHost", "-", with_host_memory,
     [](Scene& s) { return gone(s.host_memory, cuMemFreeHost(s.host_memory)); }},
    {"cuMemHostRegister_v2",
     "-",
     {},
     [](Scene& s) {
       const CUresult result = cuMemHostRegister_v2(s.pageable, kBytes, 0);
       if (result == CUDA_SUCCESS) s.registered = s.pageable;
       return result;
     }},
    {"cuMemHostUnregister", "-", with_registered,
     [](Scene& s) { return gone(s.registered, cuMemHostUnregister(s.registered)); }},
    {"cuMemHostGetDevicePointer_v2",
     "-",
     {},
     [](Scene& s) {
       CUdeviceptr out = 0;
       return cuMemHostGetDevicePointer_v2(&out, s.pinned, 0);
     }},
    {"cuMemHostGetFlags",
     "-",
     {},
     [](Scene& s) {
       unsigned flags = 0;
       return cuMemHostGetFlags(&flags, s.pinned);
     }},
};

// All of these use the legacy stream, although none names it.
const Call kCopies[] = {
    {"cuMemcpy",
     "device to device",
     {},
     [](Scene& s) { return cuMemcpy(s.memory, s.memory + 4096, 64); }},
    {"cuMemcpyHtoD_v2",
     "pageable",
     {},
     [](Scene& s) { return cuMemcpyHtoD_v2(s.memory, s.pageable, 64); }},
    {"cuMemcpyHtoD_v2",
     "page-locked",
     {},
     [](Scene& s) { return cuMemcpyHtoD_v2(s.memory, s.pinned, 64); }},
    {"cuMemcpyDtoH_v2",
     "pageable",
     {},
     [](Scene& s) { return cuMemcpyDtoH_v2(s.pageable, s.memory, 64); }},
    {"cuMemcpyDtoH_v2",
     "page-locked",
     {},
     [](Scene& s) { return cuMemcpyDtoH_v2(s.pinned, s.memory, 64); }},
    {"cuMemcpyDtoD_v2",
     "-",
     {},
     [](Scene& s) { return cuMemcpyDtoD_v2(s.memory, s.memory + 4096, 64); }},
    {"cuMemcpy2D_v2",
     "-",
     {},
     [](Scene& s) {
       const CUDA_MEMCPY2D copy = rows(s);
       return cuMemcpy2D_v2(&copy);
     }},
    {"cuMemcpy3D_v2",
     "-",
     {},
     [](Scene& s) {
       const CUDA_MEMCPY3D copy = box(s);
       return cuMemcpy3D_v2(&copy);
     }},
    {"cuMemcpyHtoA_v2", "-", with_array,
     [](Scene& s) { return cuMemcpyHtoA_v2(s.array, 0, s.pageable, 64); }},
    {"cuMemcpyAtoH_v2", "-", with_array,
     [](Scene& s) { return cuMemcpyAtoH_v2(s.pageable, s.array, 0, 64); }},
    {"cuMemsetD8_v2", "-", {}, [](Scene& s) { return cuMemsetD8_v2(s.memory, 1, 64); }},
    {"cuMemsetD16_v2", "-", {}, [](Scene& s) { return cuMemsetD16_v2(s.memory, 1, 64); }},
    {"cuMemsetD32_v2", "-", {}, [](Scene& s) { return cuMemsetD32_v2(s.memory, 1, 64); }},
    {"cuMemsetD2D8_v2", "-", {}, [](Scene& s) { return cuMemsetD2D8_v2(s.memory, 64, 1, 16, 4); }},
};

CUresult read_pool(Scene& s, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  return cuMemPoolGetAttribute(s.default_pool, attribute, &value);
}

const Call kPools[] = {
    {"cuMemPoolCreate",
     "-",
     {},
     [](Scene& s) {
       const CUmemPoolProps properties = pool_properties();
       return cuMemPoolCreate(&s.pool, &properties);
     }},
    {"cuMemPoolDestroy", "-", with_pool,
     [](Scene& s) { return gone(s.pool, cuMemPoolDestroy(s.pool)); }},
    {"cuMemPoolTrimTo", "-", {}, [](Scene& s) { return cuMemPoolTrimTo(s.default_pool, 0); }},
    {"cuMemPoolGetAttribute",
     "reserved",
     {},
     [](Scene& s) { return read_pool(s, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }},
    {"cuMemPoolGetAttribute",
     "used",
     {},
     [](Scene& s) { return read_pool(s, CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }},
    {"cuMemPoolGetAttribute",
     "release threshold",
     {},
     [](Scene& s) { return read_pool(s, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD); }},
    {"cuMemPoolSetAttribute",
     "release threshold",
     {},
     [](Scene& s) {
       cuuint64_t none = 0;
       return cuMemPoolSetAttribute(s.default_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none);
     }},
    {"cuMemPoolGetAccess",
     "-",
     {},
     [](Scene& s) {
       CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
       CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       return cuMemPoolGetAccess(&flags, s.default_pool, &here);
     }},
    {"cuMemPoolSetAccess", "-", with_pool,
     [](Scene& s) {
       const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                       CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
       return cuMemPoolSetAccess(s.pool, &access, 1);
     }},
    {"cuMemPoolExportToShareableHandle", "-", with_pool, export_pool},
    {"cuMemPoolImportFromShareableHandle", "-", with_exported_pool,
     [](Scene& s) {
       return cuMemPoolImportFromShareableHandle(&s.imported_pool, as_handle(s.descriptor),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
     }},
    {"cuDeviceGetDefaultMemPool",
     "-",
     {},
     [](Scene&) {
       CUmemoryPool pool = nullptr;
       return cuDeviceGetDefaultMemPool(&pool, 0);
     }},
    {"cuDeviceGetMemPool",
     "-",
     {},
     [](Scene&) {
       CUmemoryPool pool = nullptr;
       return cuDeviceGetMemPool(&pool, 0);
     }},
    {"cuDeviceSetMemPool", "-", {}, [](Scene& s) { return cuDeviceSetMemPool(0, s.default_pool); }},
    {"cuMemGetDefaultMemPool",
     "-",
     {},
     [](Scene&) {
       CUmemoryPool pool = nullptr;
       CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
       return cuMemGetDefaultMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED);
     }},
    {"cuDeviceGraphMemTrim", "-", {}, [](Scene&) { return cuDeviceGraphMemTrim(0); }},
    {"cuDeviceGetGraphMemAttribute",
     "reserved",
     {},
     [](Scene&) {
       cuuint64_t value = 0;
       return cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value);
     }},
    {"cuDeviceSetGraphMemAttribute",
     "highest use",
     {},
     [](Scene&) {
       cuuint64_t none = 0;
       return cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &none);
     }},
};

const Call kArrays[] = {
    {"cuArrayCreate_v2", "-", {}, [](Scene& s) { return cuArrayCreate_v2(&s.array, &kShape); }},
    {"cuArray3DCreate_v2", "-", {}, [](Scene& s) { return make_array(s, 0); }},
    {"cuArray3DCreate_v2",
     "deferred mapping",
     {},
     [](Scene& s) { return make_array(s, CUDA_ARRAY3D_DEFERRED_MAPPING); }},
    {"cuArrayDestroy", "-", with_array,
     [](Scene& s) { return gone(s.array, cuArrayDestroy(s.array)); }},
    {"cuArrayDestroy", "deferred mapping", with_deferred_array,
     [](Scene& s) { return gone(s.array, cuArrayDestroy(s.array)); }},
    {"cuArrayGetDescriptor_v2", "-", with_array,
     [](Scene& s) {
       CUDA_ARRAY_DESCRIPTOR found = {};
       return cuArrayGetDescriptor_v2(&found, s.array);
     }},
    {"cuArrayGetMemoryRequirements", "-", with_deferred_array,
     [](Scene& s) {
       CUDA_ARRAY_MEMORY_REQUIREMENTS found = {};
       return cuArrayGetMemoryRequirements(&found, s.array, 0);
     }},
    {"cuMipmappedArrayCreate", "-", {}, [](Scene& s) { return make_mipmap(s, 0); }},
    {"cuMipmappedArrayCreate",
     "deferred mapping",
     {},
     [](Scene& s) { return make_mipmap(s, CUDA_ARRAY3D_DEFERRED_MAPPING); }},
    {"cuMipmappedArrayDestroy", "-", with_mipmap,
     [](Scene& s) { return gone(s.mipmap, cuMipmappedArrayDestroy(s.mipmap)); }},
    {"cuMipmappedArrayGetMemoryRequirements", "-", with_deferred_mipmap,
     [](Scene& s) {
       CUDA_ARRAY_MEMORY_REQUIREMENTS found = {};
       return cuMipmappedArrayGetMemoryRequirements(&found, s.mipmap, 0);
     }},
};

}  // namespace

void add_memory_calls(std::vector<Call>& calls) {
  calls.insert(calls.end(), std::begin(kLinear), std::end(kLinear));
  calls.insert(calls.end(), std::begin(kHost), std::end(kHost));
  calls.insert(calls.end(), std::begin(kCopies), std::end(kCopies));
  calls.insert(calls.end(), std::begin(kPools), std::end(kPools));
  calls.insert(calls.end(), std::begin(kArrays), std::end(kArrays));
}

}  // namespace captures
