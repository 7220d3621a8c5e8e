// Calls about contexts, devices and the driver itself.
#include "tests/driver/captures/scene.h"

#include <iterator>

namespace captures {
namespace {

// Makes a context that is current only during this call: the capture continues in the context in
// which it began.
CUresult create_context(CUcontext* out) {
  const CUresult result = cuCtxCreate_v2(out, 0, 0);
  CUcontext popped = nullptr;
  if (result == CUDA_SUCCESS) (void)cuCtxPopCurrent_v2(&popped);
  return result;
}

void with_other_context(Scene& s) {
  if (s.other_context == nullptr) s.need(create_context(&s.other_context));
}

CUresult push(Scene& s) {
  const CUresult result = cuCtxPushCurrent_v2(s.context);
  if (result == CUDA_SUCCESS) ++s.pushed;
  return result;
}

CUresult pop(Scene& s) {
  CUcontext popped = nullptr;
  const CUresult result = cuCtxPopCurrent_v2(&popped);
  if (result == CUDA_SUCCESS) --s.pushed;
  return result;
}

void with_green(Scene& s) {
  CUdevResource whole = {};
  CUdevResourceDesc desc = nullptr;
  if (s.green != nullptr) return;
  if (cuDeviceGetDevResource == nullptr || cuGreenCtxCreate == nullptr)
    return s.need(CUDA_ERROR_NOT_FOUND);
  s.need(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  s.need(cuDevResourceGenerateDesc(&desc, &whole, 1));
  s.need(cuGreenCtxCreate(&s.green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
}

CUresult set_limit_to_itself(Scene&) {
  std::size_t bytes = 0;
  const CUresult result = cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE);
  return result != CUDA_SUCCESS ? result : cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes);
}

const Call kContexts[] = {
    {"cuCtxGetCurrent",
     "-",
     {},
     [](Scene&) {
       CUcontext context = nullptr;
       return cuCtxGetCurrent(&context);
     }},
    {"cuCtxSetCurrent", "-", {}, [](Scene& s) { return cuCtxSetCurrent(s.context); }},
    {"cuCtxPushCurrent_v2", "-", {}, push},
    {"cuCtxPopCurrent_v2", "-", [](Scene& s) { s.need(push(s)); }, pop},
    {"cuCtxGetDevice",
     "-",
     {},
     [](Scene&) {
       CUdevice device = 0;
       return cuCtxGetDevice(&device);
     }},
    {"cuCtxGetLimit",
     "stack",
     {},
     [](Scene&) {
       std::size_t bytes = 0;
       return cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE);
     }},
    {"cuCtxSetLimit", "stack", {}, set_limit_to_itself},
    {"cuCtxGetFlags",
     "-",
     {},
     [](Scene&) {
       unsigned flags = 0;
       return cuCtxGetFlags(&flags);
     }},
    {"cuCtxGetApiVersion",
     "-",
     {},
     [](Scene& s) {
       unsigned version = 0;
       return cuCtxGetApiVersion(s.context, &version);
     }},
    {"cuCtxGetId",
     "-",
     {},
     [](Scene& s) {
       unsigned long long id = 0;
       return cuCtxGetId(s.context, &id);
     }},
    {"cuCtxSynchronize", "-", {}, [](Scene&) { return cuCtxSynchronize(); }},
    {"cuCtxRecordEvent",
     "fresh event",
     {},
     [](Scene& s) { return cuCtxRecordEvent(s.context, s.fresh); }},
    {"cuCtxWaitEvent",
     "event from before",
     {},
     [](Scene& s) { return cuCtxWaitEvent(s.context, s.done); }},
    {"cuCtxWaitEvent",
     "event of the capture",
     {},
     [](Scene& s) { return cuCtxWaitEvent(s.context, s.recorded); }},
    {"cuCtxResetPersistingL2Cache", "-", {}, [](Scene&) { return cuCtxResetPersistingL2Cache(); }},
    {"cuCtxFromGreenCtx", "-", with_green,
     [](Scene& s) {
       CUcontext context = nullptr;
       return cuCtxFromGreenCtx(&context, s.green);
     }},
    {"cuDevicePrimaryCtxGetState",
     "-",
     {},
     [](Scene&) {
       unsigned flags = 0;
       int is_active = 0;
       return cuDevicePrimaryCtxGetState(0, &flags, &is_active);
     }},
    // The primary context stays: it is retained and released once more.
    {"cuDevicePrimaryCtxRetain",
     "context of the capture",
     {},
     [](Scene&) {
       CUcontext context = nullptr;
       return cuDevicePrimaryCtxRetain(&context, 0);
     }},
    {"cuDevicePrimaryCtxRelease_v2", "context of the capture",
     [](Scene&) {
       CUcontext context = nullptr;
       (void)cuDevicePrimaryCtxRetain(&context, 0);
     },
     [](Scene&) { return cuDevicePrimaryCtxRelease_v2(0); }},
    {"cuCtxCreate_v2",
     "-",
     {},
     [](Scene& s) { return create_context(&s.new_context); },
     {},
     false,
     true},
    {"cuCtxDestroy_v2",
     "another context",
     with_other_context,
     [](Scene& s) { return gone(s.other_context, cuCtxDestroy_v2(s.other_context)); },
     {},
     false,
     true},
};

const Call kDevices[] = {
    {"cuInit", "-", {}, [](Scene&) { return cuInit(0); }},
    {"cuDriverGetVersion",
     "-",
     {},
     [](Scene&) {
       int version = 0;
       return cuDriverGetVersion(&version);
     }},
    {"cuGetErrorName",
     "-",
     {},
     [](Scene&) {
       const char* name = nullptr;
       return cuGetErrorName(CUDA_SUCCESS, &name);
     }},
    {"cuGetProcAddress_v2",
     "-",
     {},
     [](Scene&) {
       void* found = nullptr;
       CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
       return cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status);
     }},
    {"cuDeviceGet",
     "-",
     {},
     [](Scene&) {
       CUdevice device = 0;
       return cuDeviceGet(&device, 0);
     }},
    {"cuDeviceGetCount",
     "-",
     {},
     [](Scene&) {
       int count = 0;
       return cuDeviceGetCount(&count);
     }},
    {"cuDeviceGetAttribute",
     "-",
     {},
     [](Scene&) {
       int value = 0;
       return cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
     }},
    {"cuDeviceGetName",
     "-",
     {},
     [](Scene&) {
       char name[64] = {};
       return cuDeviceGetName(name, sizeof name, 0);
     }},
    {"cuDeviceGetUuid",
     "-",
     {},
     [](Scene&) {
       CUuuid id = {};
       return cuDeviceGetUuid(&id, 0);
     }},
    {"cuDeviceGetUuid_v2",
     "-",
     {},
     [](Scene&) {
       CUuuid id = {};
       return cuDeviceGetUuid_v2(&id, 0);
     }},
    {"cuDeviceTotalMem_v2",
     "-",
     {},
     [](Scene&) {
       std::size_t bytes = 0;
       return cuDeviceTotalMem_v2(&bytes, 0);
     }},
    {"cuDeviceCanAccessPeer",
     "itself",
     {},
     [](Scene&) {
       int can = 0;
       return cuDeviceCanAccessPeer(&can, 0, 0);
     }},
    {"cuThreadExchangeStreamCaptureMode",
     "the same again",
     {},
     [](Scene&) {
       auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
       const CUresult result = cuThreadExchangeStreamCaptureMode(&mode);
       return result != CUDA_SUCCESS ? result : cuThreadExchangeStreamCaptureMode(&mode);
     }},
};

}  // namespace

void add_context_calls(std::vector<Call>& calls) {
  calls.insert(calls.end(), std::begin(kContexts), std::end(kContexts));
  calls.insert(calls.end(), std::begin(kDevices), std::end(kDevices));
}

}  // namespace captures
