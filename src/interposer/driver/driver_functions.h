// The types of the driver functions that libgpurota hooks, and of the driver functions that it
// calls.
//
// The column `use` of abi/driver_functions.tsv lists these functions. From that list the build
// makes GPUROTA_HOOKED_FUNCTIONS and GPUROTA_CALLED_FUNCTIONS (driver_table.h). Each hook is an
// exported function of this library with the same name and type.
#pragma once

#include "abi/cuda_abi.h"
#include "abi/cuda_external.h"
#include "interposer/driver_table.h"

#define GPUROTA_API __attribute__((visibility("default")))

// Hooks that only wait at the gate of a swap lease, generated from gated_functions.txt.
#include "interposer/gated_functions.h"

extern "C" {

GPUROTA_API CUresult cuInit(unsigned int flags);
GPUROTA_API CUresult cuGetProcAddress(const char* symbol, void** pfn, int version,
                                      cuuint64_t flags);
GPUROTA_API CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version,
                                         cuuint64_t flags, CUdriverProcAddressQueryResult* status);

GPUROTA_API CUresult cuStreamSynchronize(CUstream stream);
GPUROTA_API CUresult cuStreamSynchronize_ptsz(CUstream stream);
GPUROTA_API CUresult cuStreamQuery(CUstream stream);
GPUROTA_API CUresult cuStreamQuery_ptsz(CUstream stream);
GPUROTA_API CUresult cuEventSynchronize(CUevent event);
GPUROTA_API CUresult cuEventQuery(CUevent event);
GPUROTA_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
GPUROTA_API CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags);
GPUROTA_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
GPUROTA_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end);
GPUROTA_API CUresult cuEventRecord(CUevent event, CUstream stream);
GPUROTA_API CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
GPUROTA_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags);
GPUROTA_API CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream,
                                                 unsigned int flags);
GPUROTA_API CUresult cuCtxSynchronize();
GPUROTA_API CUresult cuCtxSynchronize_v2(CUcontext context);

GPUROTA_API CUresult cuMemAlloc(CUdeviceptr_v1* out, unsigned int size);
GPUROTA_API CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size);
GPUROTA_API CUresult cuMemAllocPitch(CUdeviceptr_v1* out, unsigned int* pitch, unsigned int width,
                                     unsigned int height, unsigned int element);
GPUROTA_API CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width,
                                        size_t height, unsigned int element);
GPUROTA_API CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags);
GPUROTA_API CUresult cuMemFree(CUdeviceptr_v1 ptr);
GPUROTA_API CUresult cuMemFree_v2(CUdeviceptr ptr);

GPUROTA_API CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size,
                                 const CUmemAllocationProp* prop, unsigned long long flags);
GPUROTA_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
GPUROTA_API CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                              CUmemGenericAllocationHandle handle, unsigned long long flags);
GPUROTA_API CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
GPUROTA_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address);
GPUROTA_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out,
                                                    void* os_handle,
                                                    CUmemAllocationHandleType type);

GPUROTA_API CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                                  CUmemAllocationHandleType type,
                                                  unsigned long long flags);
GPUROTA_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* out,
                                                            CUmemGenericAllocationHandle handle);
GPUROTA_API CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* access,
                                    size_t count);
GPUROTA_API CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                    CUdeviceptr ptr);
GPUROTA_API CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size);

GPUROTA_API CUresult cuCtxCreate(CUcontext* out, unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam* params, int count,
                                    unsigned int flags, CUdevice device);
GPUROTA_API CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned int flags,
                                    CUdevice device);
GPUROTA_API CUresult cuCtxDestroy(CUcontext context);
GPUROTA_API CUresult cuCtxDestroy_v2(CUcontext context);
GPUROTA_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxRelease(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxReset(CUdevice device);
GPUROTA_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

GPUROTA_API CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream stream);
GPUROTA_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t size, CUstream stream);
GPUROTA_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                             CUstream stream);
GPUROTA_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t size, CUmemoryPool pool,
                                                  CUstream stream);
GPUROTA_API CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
GPUROTA_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream);
GPUROTA_API CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props);
GPUROTA_API CUresult cuMemPoolDestroy(CUmemoryPool pool);
GPUROTA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
GPUROTA_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                           void* value);
GPUROTA_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                           void* value);
GPUROTA_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
GPUROTA_API CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                     CUmemoryPool pool);

GPUROTA_API CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* shape);
GPUROTA_API CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape);
GPUROTA_API CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape);
GPUROTA_API CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape);
GPUROTA_API CUresult cuArrayDestroy(CUarray array);
GPUROTA_API CUresult cuMipmappedArrayCreate(CUmipmappedArray* out,
                                            const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                            unsigned int levels);
GPUROTA_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
GPUROTA_API CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream);
GPUROTA_API CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count,
                                             CUstream stream);

GPUROTA_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle* out,
                                       const CUmulticastObjectProp* prop);
GPUROTA_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
                                        CUmemGenericAllocationHandle memory, size_t memory_offset,
                                        size_t size, unsigned long long flags);
GPUROTA_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
                                         CUdeviceptr memory, size_t size, unsigned long long flags);
GPUROTA_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device,
                                       size_t offset, size_t size);

GPUROTA_API CUresult cuCtxSetLimit(CUlimit limit, size_t value);
GPUROTA_API CUresult cuCtxAttach(CUcontext* out, unsigned int flags);
GPUROTA_API CUresult cuCtxDetach(CUcontext context);
GPUROTA_API CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc resources, CUdevice device,
                                      unsigned int flags);
GPUROTA_API CUresult cuGreenCtxDestroy(CUgreenCtx green);

GPUROTA_API CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node,
                                        char* log, size_t log_bytes);
GPUROTA_API CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node,
                                           char* log, size_t log_bytes);
GPUROTA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph,
                                                 unsigned long long flags);
GPUROTA_API CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* params);
GPUROTA_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                                       CUDA_GRAPH_INSTANTIATE_PARAMS* params);
GPUROTA_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
GPUROTA_API CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream);
GPUROTA_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
GPUROTA_API CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream);
GPUROTA_API CUresult cuGraphExecDestroy(CUgraphExec exec);
GPUROTA_API CUresult cuDeviceGraphMemTrim(CUdevice device);

GPUROTA_API CUresult cuStreamCreate(CUstream* out, unsigned int flags);
GPUROTA_API CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority);
GPUROTA_API CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx green, unsigned int flags,
                                            int priority);
GPUROTA_API CUresult cuStreamDestroy(CUstream stream);
GPUROTA_API CUresult cuStreamDestroy_v2(CUstream stream);
GPUROTA_API CUresult cuStreamBeginCapture(CUstream stream);
GPUROTA_API CUresult cuStreamBeginCapture_ptsz(CUstream stream);
GPUROTA_API CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode);
GPUROTA_API CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
GPUROTA_API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                                 const CUgraphNode* before,
                                                 const CUgraphEdgeData* edges, size_t count,
                                                 CUstreamCaptureMode mode);
GPUROTA_API CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                      const CUgraphNode* before,
                                                      const CUgraphEdgeData* edges, size_t count,
                                                      CUstreamCaptureMode mode);
GPUROTA_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* out);
GPUROTA_API CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* out);
GPUROTA_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data);
GPUROTA_API CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data);
GPUROTA_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* data,
                                         unsigned int flags);
GPUROTA_API CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback function,
                                              void* data, unsigned int flags);

GPUROTA_API CUresult cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned int* size,
                                          CUdeviceptr_v1 ptr);
GPUROTA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr ptr);
GPUROTA_API CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute,
                                           CUdeviceptr ptr);
GPUROTA_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes,
                                            void** out, CUdeviceptr ptr);
GPUROTA_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr ptr);
GPUROTA_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* out, void* os_handle,
                                                        CUmemAllocationHandleType type,
                                                        unsigned long long flags);
GPUROTA_API CUresult cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool pool,
                                            CUmemPoolPtrExportData* data);
GPUROTA_API CUresult cuImportExternalMemory(CUexternalMemory* out,
                                            const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* desc);
GPUROTA_API CUresult cuDestroyExternalMemory(CUexternalMemory memory);
GPUROTA_API CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr ptr);
GPUROTA_API CUresult cuIpcOpenMemHandle(CUdeviceptr* out, CUipcMemHandle handle,
                                        unsigned int flags);
GPUROTA_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle,
                                           unsigned int flags);
GPUROTA_API CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
GPUROTA_API CUresult cuMemGetHandleForAddressRange(void* out, CUdeviceptr ptr, size_t size,
                                                   int type, unsigned long long flags);

GPUROTA_API CUresult cuMemGetInfo(unsigned int* free, unsigned int* total);
GPUROTA_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total);
GPUROTA_API CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device);
GPUROTA_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device);

// Only called: this library does not define these functions.
CUresult cuCtxGetCurrent(CUcontext* out);
CUresult cuCtxGetDevice(CUdevice* out);
CUresult cuCtxPopCurrent_v2(CUcontext* out);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
CUresult cuDeviceCanAccessPeer(int* out, CUdevice device, CUdevice peer);
CUresult cuEventCreate(CUevent* out, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned int flags);
CUresult cuMemHostRegister_v2(void* memory, size_t size, unsigned int flags);
CUresult cuMemHostUnregister(void* memory);
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name);
CUresult cuModuleLoadData(CUmodule* out, const void* image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetCount(int* out);
CUresult cuDeviceGetUuid(CUuuid* out, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* is_active);
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamGetCtx(CUstream stream, CUcontext* out);
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* out);
CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode);
CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                CUmemAllocationType type);
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count);
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type);
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph);
CUresult cuCtxGetLimit(size_t* value, CUlimit limit);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array,
                                      CUdevice device);
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                               CUmipmappedArray array, CUdevice device);
CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx green);

}  // extern "C"
