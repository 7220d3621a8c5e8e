// Devices: counting them and querying their properties.
#include "sim/cuda/api.h"
#include "sim/cuda/device_attributes.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using gpurota::sim::Call;
using gpurota::sim::device_attribute;
using gpurota::sim::DeviceConfig;

namespace {

// A call about one device, given by its ordinal.
class DeviceCall : public Call {
 public:
  explicit DeviceCall(CUdevice ordinal) {
    if (failed()) return;
    device_ = driver_.machine_device(ordinal);
    if (device_ < 0) error_ = CUDA_ERROR_INVALID_DEVICE;
  }
  int device() const { return device_; }
  const DeviceConfig& config() const { return machine().config(device_); }

 private:
  int device_ = -1;
};

CUresult copy_text(const char* text, char* out, int length) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", text);
  return CUDA_SUCCESS;
}

std::uint64_t usable_bytes(const DeviceConfig& gpu) {
  return gpu.memory_bytes - gpu.reserved_bytes;
}

}  // namespace

GPUROTA_SIM_API cuDeviceGetCount(int* count) {
  const Call call;
  if (call.failed()) return call.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(call.driver().visible.size());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGet(CUdevice* device, int ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  return call.failed() ? call.error() : copy_text(call.config().name, name, length);
}

// For a MIG instance, cuDeviceGetUuid answers the UUID of its GPU, and cuDeviceGetUuid_v2 its own.
GPUROTA_SIM_API cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const int parent = call.config().parent;
  const DeviceConfig& gpu = parent >= 0 ? call.machine().config(parent) : call.config();
  std::memcpy(uuid->bytes, gpu.uuid_bytes, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, call.config().uuid_bytes, sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *bytes = usable_bytes(call.config());
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceTotalMem(unsigned* bytes, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t all = usable_bytes(call.config());
  *bytes = all > UINT32_MAX ? UINT32_MAX : static_cast<unsigned>(all);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  const auto answer = device_attribute(call.config(), attribute);
  if (value == nullptr || !answer) return CUDA_ERROR_INVALID_VALUE;
  *value = *answer;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto ask = [&](int attribute) {
    return device_attribute(call.config(), attribute).value_or(0);
  };
  *properties = {};
  properties->maxThreadsPerBlock = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int axis = 0; axis < 3; ++axis) {
    properties->maxThreadsDim[axis] = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
    properties->maxGridSize[axis] = ask(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
  }
  properties->sharedMemPerBlock = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = ask(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = ask(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = ask(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = ask(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = call.config().capability_major;
  *minor = call.config().capability_minor;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetPCIBusId(char* out, int length, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  char text[32];
  const DeviceConfig& gpu = call.config();
  std::snprintf(text, sizeof text, "%04X:%02X:%02X.0", gpu.pci_domain, gpu.pci_bus, gpu.pci_device);
  return copy_text(text, out, length);
}

GPUROTA_SIM_API cuDeviceGetByPCIBusId(CUdevice* out, const char* address) {
  const Call call;
  if (call.failed()) return call.error();
  if (out == nullptr || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, device = 0;
  const bool has_domain = std::sscanf(address, "%x:%x:%x", &domain, &bus, &device) == 3;
  if (!has_domain) {
    domain = 0;
    if (std::sscanf(address, "%x:%x", &bus, &device) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t i = 0; i < call.driver().visible.size(); ++i) {
    const DeviceConfig& gpu = call.machine().config(call.driver().visible[i]);
    if (gpu.pci_domain != domain || gpu.pci_bus != bus || gpu.pci_device != device) continue;
    *out = static_cast<CUdevice>(i);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

GPUROTA_SIM_API cuDeviceCanAccessPeer(int* can, CUdevice from, CUdevice to) {
  const DeviceCall call(from);
  if (call.failed()) return call.error();
  const int other = call.driver().machine_device(to);
  if (other < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool both = call.config().peer_access != 0 && call.machine().config(other).peer_access != 0;
  *can = both && from != to ? 1 : 0;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                        CUdevice to) {
  int can = 0;
  const CUresult result = cuDeviceCanAccessPeer(&can, from, to);
  if (result != CUDA_SUCCESS) return result;
  if (value == nullptr || from == to) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : can;
  return CUDA_SUCCESS;
}

GPUROTA_SIM_API cuDeviceGetExecAffinitySupport(int* supported, int, CUdevice ordinal) {
  const DeviceCall call(ordinal);
  if (call.failed()) return call.error();
  if (supported == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *supported = 0;
  return CUDA_SUCCESS;
}
