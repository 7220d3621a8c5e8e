// Attributes of streams: stored. Only the priority has an effect.
#include "sim/cuda/stream.h"

#include <cstring>

using gpurota::sim::Stream;
using gpurota::sim::StreamCall;

namespace {

bool is_of_streams(int attribute) {
  constexpr int kMemSyncDomainMap = 9, kMemSyncDomain = 10;
  return attribute == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
         attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY || attribute == kMemSyncDomainMap ||
         attribute == kMemSyncDomain;
}

}  // namespace

GPUROTA_SIM_STREAM_API(cuStreamSetAttribute, _ptsz,
                       (CUstream handle, CUlaunchAttributeID attribute,
                        const CUlaunchAttributeValue* value),
                       (handle, attribute, value)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (value == nullptr || !is_of_streams(attribute)) return CUDA_ERROR_INVALID_VALUE;
  call.stream().attributes[attribute] = *value;
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) call.stream().priority = value->priority;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamGetAttribute, _ptsz,
                       (CUstream handle, CUlaunchAttributeID attribute,
                        CUlaunchAttributeValue* value),
                       (handle, attribute, value)) {
  const StreamCall call(handle);
  if (call.failed()) return call.error();
  if (value == nullptr || !is_of_streams(attribute)) return CUDA_ERROR_INVALID_VALUE;
  std::memset(value, 0, sizeof *value);
  const Stream& stream = call.stream();
  const auto set = stream.attributes.find(attribute);
  if (set != stream.attributes.end()) {
    *value = set->second;
  } else if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    value->priority = stream.priority;
  } else if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    value->cooperative = 1;  // CU_SYNC_POLICY_AUTO
  }
  return CUDA_SUCCESS;
}

GPUROTA_SIM_STREAM_API(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), (to, from)) {
  const StreamCall call(to);
  if (call.failed()) return call.error();
  const Stream* source = resolve_stream(call.driver(), *call.context(), from);
  if (source == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  call.stream().attributes = source->attributes;
  return CUDA_SUCCESS;
}
