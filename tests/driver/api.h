// The driver's functions that the conformance programs call, looked up in libcuda.so.1 by name: the
// simulated driver's or NVIDIA's, whichever the loader finds. And the checks' small framework.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

#include <cstddef>
#include <cstdint>
#include <string>

#define DRIVER_FUNCTIONS(X)                                                                       \
  X(cuInit, unsigned)                                                                             \
  X(cuDriverGetVersion, int*)                                                                     \
  X(cuGetProcAddress, const char*, void**, int, cuuint64_t)                                       \
  X(cuGetProcAddress_v2, const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*)   \
  X(cuGetErrorName, CUresult, const char**)                                                       \
  X(cuDeviceGetCount, int*)                                                                       \
  X(cuDeviceGet, CUdevice*, int)                                                                  \
  X(cuDeviceGetName, char*, int, CUdevice)                                                        \
  X(cuDeviceGetUuid_v2, CUuuid*, CUdevice)                                                        \
  X(cuDeviceTotalMem_v2, std::size_t*, CUdevice)                                                  \
  X(cuDeviceGetAttribute, int*, CUdevice_attribute, CUdevice)                                     \
  X(cuDevicePrimaryCtxRetain, CUcontext*, CUdevice)                                               \
  X(cuDevicePrimaryCtxRelease_v2, CUdevice)                                                       \
  X(cuDevicePrimaryCtxReset_v2, CUdevice)                                                         \
  X(cuDevicePrimaryCtxGetState, CUdevice, unsigned*, int*)                                        \
  X(cuCtxCreate_v2, CUcontext*, unsigned, CUdevice)                                               \
  X(cuCtxDestroy_v2, CUcontext)                                                                   \
  X(cuCtxPushCurrent_v2, CUcontext)                                                               \
  X(cuCtxPopCurrent_v2, CUcontext*)                                                               \
  X(cuCtxSetCurrent, CUcontext)                                                                   \
  X(cuCtxGetCurrent, CUcontext*)                                                                  \
  X(cuCtxGetDevice, CUdevice*)                                                                    \
  X(cuCtxSynchronize)                                                                             \
  X(cuMemGetInfo_v2, std::size_t*, std::size_t*)                                                  \
  X(cuMemAlloc_v2, CUdeviceptr*, std::size_t)                                                     \
  X(cuMemAllocPitch_v2, CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned)           \
  X(cuMemAllocManaged, CUdeviceptr*, std::size_t, unsigned)                                       \
  X(cuMemFree_v2, CUdeviceptr)                                                                    \
  X(cuMemGetAddressRange_v2, CUdeviceptr*, std::size_t*, CUdeviceptr)                             \
  X(cuMemHostAlloc, void**, std::size_t, unsigned)                                                \
  X(cuMemFreeHost, void*)                                                                         \
  X(cuMemHostRegister_v2, void*, std::size_t, unsigned)                                           \
  X(cuMemHostUnregister, void*)                                                                   \
  X(cuMemHostGetDevicePointer_v2, CUdeviceptr*, void*, unsigned)                                  \
  X(cuPointerGetAttribute, void*, CUpointer_attribute, CUdeviceptr)                               \
  X(cuMemAllocAsync, CUdeviceptr*, std::size_t, CUstream)                                         \
  X(cuMemFreeAsync, CUdeviceptr, CUstream)                                                        \
  X(cuMemAllocFromPoolAsync, CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)                   \
  X(cuDeviceGetDefaultMemPool, CUmemoryPool*, CUdevice)                                           \
  X(cuMemPoolCreate, CUmemoryPool*, const CUmemPoolProps*)                                        \
  X(cuMemPoolDestroy, CUmemoryPool)                                                               \
  X(cuMemPoolTrimTo, CUmemoryPool, std::size_t)                                                   \
  X(cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void*)                              \
  X(cuMemGetAllocationGranularity, std::size_t*, const CUmemAllocationProp*,                      \
    CUmemAllocationGranularity_flags)                                                             \
  X(cuMemAddressReserve, CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long) \
  X(cuMemAddressFree, CUdeviceptr, std::size_t)                                                   \
  X(cuMemCreate, CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*,          \
    unsigned long long)                                                                           \
  X(cuMemRelease, CUmemGenericAllocationHandle)                                                   \
  X(cuMemMap, CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,                \
    unsigned long long)                                                                           \
  X(cuMemUnmap, CUdeviceptr, std::size_t)                                                         \
  X(cuMemSetAccess, CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t)                \
  X(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle*, void*)                            \
  X(cuMemExportToShareableHandle, void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, \
    unsigned long long)                                                                           \
  X(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle*, void*,                         \
    CUmemAllocationHandleType)                                                                    \
  X(cuMemcpy, CUdeviceptr, CUdeviceptr, std::size_t)                                              \
  X(cuMemcpyHtoD_v2, CUdeviceptr, const void*, std::size_t)                                       \
  X(cuMemcpyDtoH_v2, void*, CUdeviceptr, std::size_t)                                             \
  X(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, std::size_t)                                       \
  X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*, std::size_t, CUstream)                        \
  X(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr, std::size_t, CUstream)                              \
  X(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, std::size_t, CUstream)                        \
  X(cuMemcpy2D_v2, const CUDA_MEMCPY2D*)                                                          \
  X(cuMemcpy3D_v2, const CUDA_MEMCPY3D*)                                                          \
  X(cuMemcpyHtoA_v2, CUarray, std::size_t, const void*, std::size_t)                              \
  X(cuMemcpyAtoH_v2, void*, CUarray, std::size_t, std::size_t)                                    \
  X(cuMemcpyAtoA_v2, CUarray, std::size_t, CUarray, std::size_t, std::size_t)                     \
  X(cuMemcpyDtoA_v2, CUarray, std::size_t, CUdeviceptr, std::size_t)                              \
  X(cuMemcpyAtoD_v2, CUdeviceptr, CUarray, std::size_t, std::size_t)                              \
  X(cuMemsetD8_v2, CUdeviceptr, unsigned char, std::size_t)                                       \
  X(cuMemsetD16_v2, CUdeviceptr, unsigned short, std::size_t)                                     \
  X(cuMemsetD32_v2, CUdeviceptr, unsigned, std::size_t)                                           \
  X(cuMemsetD32Async, CUdeviceptr, unsigned, std::size_t, CUstream)                               \
  X(cuMemsetD2D8_v2, CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t)           \
  X(cuMemsetD2D16_v2, CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t)         \
  X(cuMemsetD2D32_v2, CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t)               \
  X(cuArrayCreate_v2, CUarray*, const CUDA_ARRAY_DESCRIPTOR*)                                     \
  X(cuArrayDestroy, CUarray)                                                                      \
  X(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR*, CUarray)                                     \
  X(cuStreamCreate, CUstream*, unsigned)                                                          \
  X(cuStreamDestroy_v2, CUstream)                                                                 \
  X(cuStreamQuery, CUstream)                                                                      \
  X(cuStreamSynchronize, CUstream)                                                                \
  X(cuStreamWaitEvent, CUstream, CUevent, unsigned)                                               \
  X(cuLaunchHostFunc, CUstream, CUhostFn, void*)                                                  \
  X(cuStreamBeginCapture_v2, CUstream, CUstreamCaptureMode)                                       \
  X(cuStreamEndCapture, CUstream, CUgraph*)                                                       \
  X(cuStreamIsCapturing, CUstream, CUstreamCaptureStatus*)                                        \
  X(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode*)                                      \
  X(cuEventCreate, CUevent*, unsigned)                                                            \
  X(cuEventDestroy_v2, CUevent)                                                                   \
  X(cuEventRecord, CUevent, CUstream)                                                             \
  X(cuEventQuery, CUevent)                                                                        \
  X(cuEventSynchronize, CUevent)                                                                  \
  X(cuEventElapsedTime, float*, CUevent, CUevent)                                                 \
  X(cuModuleLoadData, CUmodule*, const void*)                                                     \
  X(cuModuleUnload, CUmodule)                                                                     \
  X(cuModuleGetFunction, CUfunction*, CUmodule, const char*)                                      \
  X(cuFuncGetAttribute, int*, CUfunction_attribute, CUfunction)                                   \
  X(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
    unsigned, CUstream, void**, void**)                                                           \
  X(cuGraphCreate, CUgraph*, unsigned)                                                            \
  X(cuGraphDestroy, CUgraph)                                                                      \
  X(cuGraphGetNodes, CUgraph, CUgraphNode*, std::size_t*)                                         \
  X(cuGraphNodeGetType, CUgraphNode, CUgraphNodeType*)                                            \
  X(cuGraphAddKernelNode_v2, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,              \
    const CUDA_KERNEL_NODE_PARAMS*)                                                               \
  X(cuGraphAddMemcpyNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                 \
    const CUDA_MEMCPY3D*, CUcontext)                                                              \
  X(cuGraphAddMemsetNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                 \
    const CUDA_MEMSET_NODE_PARAMS*, CUcontext)                                                    \
  X(cuGraphAddHostNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,                   \
    const CUDA_HOST_NODE_PARAMS*)                                                                 \
  X(cuGraphAddEmptyNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t)                  \
  X(cuGraphAddChildGraphNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph)    \
  X(cuGraphAddMemAllocNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,               \
    CUDA_MEM_ALLOC_NODE_PARAMS*)                                                                  \
  X(cuGraphAddMemFreeNode, CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUdeviceptr)   \
  X(cuGraphClone, CUgraph*, CUgraph)                                                              \
  X(cuGraphInstantiateWithFlags, CUgraphExec*, CUgraph, unsigned long long)                       \
  X(cuGraphExecDestroy, CUgraphExec)                                                              \
  X(cuGraphExecUpdate_v2, CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)                     \
  X(cuGraphExecKernelNodeSetParams_v2, CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*)  \
  X(cuGraphLaunch, CUgraphExec, CUstream)                                                         \
  X(cuDeviceGetGraphMemAttribute, CUdevice, CUgraphMem_attribute, void*)                          \
  X(cuDeviceGraphMemTrim, CUdevice)

template <class... Arguments>
using DriverFunction = CUresult (*)(Arguments...);

#define DRIVER_DECLARE(name, ...) inline DriverFunction<__VA_ARGS__> name = nullptr;
DRIVER_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

// A check is a function with a sentence for its name; `run_checks` runs all of the program, prints
// "ok NAME", "FAIL NAME: what" or "skip NAME: why", and returns the exit code.
using Check = void (*)();
struct CheckEntry {
  CheckEntry(const char* name, Check run, bool needs_simulator);
};
int run_checks();

void fail_check(const char* file, int line, const std::string& what);
void skip_check(const std::string& why);
bool is_simulated();
void* driver_library();  // libcuda.so.1
std::string code_name(CUresult code);
// Runs `body` in a child made before the driver is initialised here; its return value is the exit
// code. Only for checks of programs that do not call cuInit themselves.
int in_child(int (*body)());

#define DRIVER_CHECK_(name, simulator_only)                          \
  static void name();                                                \
  static const CheckEntry name##_entry(#name, name, simulator_only); \
  static void name()
#define DRIVER_CHECK(name) DRIVER_CHECK_(name, false)
// Needs the simulator's switches: skipped on a real GPU.
#define SIMULATOR_CHECK(name) DRIVER_CHECK_(name, true)

#define EXPECT_CODE(call, code)                                                        \
  do {                                                                                 \
    const CUresult got_ = (call);                                                      \
    if (got_ != (code)) {                                                              \
      fail_check(__FILE__, __LINE__, #call " is " + code_name(got_) + ", not " #code); \
      return;                                                                          \
    }                                                                                  \
  } while (false)
#define EXPECT_OK(call) EXPECT_CODE(call, CUDA_SUCCESS)
#define EXPECT_TRUE(condition)                               \
  do {                                                       \
    if (!(condition)) {                                      \
      fail_check(__FILE__, __LINE__, "not so: " #condition); \
      return;                                                \
    }                                                        \
  } while (false)
#define EXPECT_SAME(a, b)                                                               \
  do {                                                                                  \
    const auto a_ = (a);                                                                \
    const auto b_ = (b);                                                                \
    if (!(a_ == b_)) {                                                                  \
      fail_check(__FILE__, __LINE__,                                                    \
                 #a " is " + std::to_string(a_) + ", " #b " is " + std::to_string(b_)); \
      return;                                                                           \
    }                                                                                   \
  } while (false)

// A context of device 0, current while it lives; and the kernels of kernels.ptx.
class WithContext {
 public:
  WithContext();
  ~WithContext();
  WithContext(const WithContext&) = delete;
  WithContext& operator=(const WithContext&) = delete;
  CUcontext context() const { return context_; }
  CUfunction kernel(const char* name);

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

CUresult launch(CUfunction kernel, CUstream stream, void** arguments);
CUresult spin(CUfunction spin_us, CUstream stream, std::uint64_t microseconds);
