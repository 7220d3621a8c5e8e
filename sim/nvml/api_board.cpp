// NVML: power, temperature, clocks and errors of a board. The values follow the utilisation.
#include "sim/nvml/nvml.h"

using gpurota::sim::DeviceConfig;
using gpurota::sim::NvmlDevice;

namespace {

constexpr unsigned kSlowdown = 90;  // °C
constexpr unsigned kWarmer = 35;    // how many °C warmer a busy board is than an idle one

// Answers one number that `read` takes from the board; a MIG instance has no board of its own.
template <class Out, class Read>
nvmlReturn_t number_of_board(nvmlDevice_t handle, Out* out, const Read& read) {
  const NvmlDevice device(handle);
  if (device.failed()) return device.error();
  if (device.is_instance()) return NVML_ERROR_NOT_SUPPORTED;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<Out>(read(device));
  return NVML_SUCCESS;
}

unsigned busy(const NvmlDevice& device) { return device.machine().utilisation(device.index(), 0); }

unsigned temperature(const NvmlDevice& device) {
  return static_cast<unsigned>(device.config().temperature_c) + kWarmer * busy(device) / 100;
}

unsigned power_mw(const NvmlDevice& device) {
  const DeviceConfig& gpu = device.config();
  const auto range = static_cast<unsigned>(gpu.power_limit_mw - gpu.power_mw);
  return static_cast<unsigned>(gpu.power_mw) + range / 100 * busy(device);
}

unsigned long long clock_reasons(const NvmlDevice& device) {
  if (busy(device) == 0) return NVML_CLOCKS_GPU_IDLE;
  unsigned long long reasons = 0;
  // Capped: within one percent of the power limit.
  const auto limit = static_cast<unsigned>(device.config().power_limit_mw);
  if (power_mw(device) >= limit - limit / 100) reasons |= NVML_CLOCKS_SW_POWER_CAP;
  if (temperature(device) >= kSlowdown) reasons |= NVML_CLOCKS_SW_THERMAL_SLOWDOWN;
  return reasons;
}

}  // namespace

GPUROTA_SIM_NVML nvmlDeviceGetTemperature(nvmlDevice_t handle, int, unsigned* out) {
  return number_of_board(handle, out, temperature);
}

GPUROTA_SIM_NVML nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, int kind, unsigned* out) {
  if (kind != NVML_TEMPERATURE_THRESHOLD_SLOWDOWN) return NVML_ERROR_NOT_SUPPORTED;
  return number_of_board(handle, out, [](const NvmlDevice&) { return kSlowdown; });
}

GPUROTA_SIM_NVML nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned* out) {
  return number_of_board(handle, out, power_mw);
}

GPUROTA_SIM_NVML nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned* out) {
  return number_of_board(handle, out,
                         [](const NvmlDevice& d) { return d.config().power_limit_mw; });
}

GPUROTA_SIM_NVML nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned* out) {
  return nvmlDeviceGetEnforcedPowerLimit(handle, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetClockInfo(nvmlDevice_t handle, int kind, unsigned* out) {
  return number_of_board(handle, out, [kind](const NvmlDevice& d) {
    const DeviceConfig& gpu = d.config();
    return (kind == NVML_CLOCK_MEM ? gpu.memory_clock_khz : gpu.clock_khz) / 1000;
  });
}

GPUROTA_SIM_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, int kind, unsigned* out) {
  return nvmlDeviceGetClockInfo(handle, kind, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle,
                                                        unsigned long long* out) {
  return number_of_board(handle, out, clock_reasons);
}

GPUROTA_SIM_NVML nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t handle,
                                                           unsigned long long* out) {
  return nvmlDeviceGetCurrentClocksEventReasons(handle, out);
}

GPUROTA_SIM_NVML nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, int kind, int,
                                             unsigned long long* out) {
  const NvmlDevice device(handle);
  if (!device.failed() && device.config().ecc == 0) return NVML_ERROR_NOT_SUPPORTED;
  return number_of_board(handle, out, [kind](const NvmlDevice& d) {
    return kind == NVML_MEMORY_ERROR_TYPE_UNCORRECTED
               ? d.machine().faults(d.index()).ecc_errors.load()
               : 0;
  });
}
