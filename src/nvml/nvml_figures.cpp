#include "nvml/nvml_figures.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace gpurota::nvml {
namespace {

// At most this many events are taken in one reading; the rest come in the next.
constexpr int kMostEvents = 64;
constexpr unsigned kMostSamples = 4096;

template <class Function, class... Arguments>
std::optional<int> read_number(Function function, Device device, Arguments... arguments) {
  unsigned number = 0;
  if (function == nullptr || function(device, arguments..., &number) != NVML_SUCCESS) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

std::uint32_t limits_of(unsigned long long reasons) {
  constexpr std::pair<unsigned long long, ClockLimit> kLimits[] = {
      {NVML_CLOCKS_SW_POWER_CAP, ClockLimit::kPower},
      {NVML_CLOCKS_SW_THERMAL_SLOWDOWN, ClockLimit::kTemperature},
      {NVML_CLOCKS_HW_THERMAL_SLOWDOWN, ClockLimit::kTemperature},
      {NVML_CLOCKS_HW_SLOWDOWN, ClockLimit::kHardware},
      {NVML_CLOCKS_HW_POWER_BRAKE, ClockLimit::kPowerBrake},
      {NVML_CLOCKS_APPLICATIONS_SETTING, ClockLimit::kSetting},
      {NVML_CLOCKS_DISPLAY_SETTING, ClockLimit::kSetting},
      {NVML_CLOCKS_SYNC_BOOST, ClockLimit::kSync}};
  std::uint32_t limits = 0;
  for (const auto& [reason, limit] : kLimits) {
    if ((reasons & reason) != 0) limits |= static_cast<std::uint32_t>(limit);
  }
  return limits;
}

}  // namespace

EventSet::~EventSet() {
  if (set_ != nullptr) (void)free_(set_);
}

bool EventSet::open(const NvmlTable& table, Device device, unsigned long long types) {
  if (!table.events.all() || table.events.create(&set_) != NVML_SUCCESS) return false;
  free_ = table.events.free;
  return table.events.add(device, types, set_) == NVML_SUCCESS;
}

GpuFigures FiguresReader::read(const NvmlTable& table, Device device, bool processes) {
  GpuFigures figures;
  figures.power_mw = read_number(table.power_usage, device);
  figures.power_limit_mw = read_number(table.power_limit, device);
  figures.temperature = read_number(table.temperature, device, int{NVML_TEMPERATURE_GPU});
  figures.slowdown_temperature =
      read_number(table.temperature_threshold, device, int{NVML_TEMPERATURE_THRESHOLD_SLOWDOWN});
  figures.sm_clock_mhz = read_number(table.clock_info, device, int{NVML_CLOCK_SM});
  unsigned long long number = 0;
  if (table.clock_reasons != nullptr && table.clock_reasons(device, &number) == NVML_SUCCESS) {
    figures.clock_limits = limits_of(number);
  }
  if (table.ecc_errors != nullptr && table.ecc_errors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                                      NVML_VOLATILE_ECC, &number) == NVML_SUCCESS) {
    figures.ecc_uncorrected = number;
  }
  figures.xid_errors = read_xid_errors(table, device);
  if (processes) figures.processes = read_processes(table, device);
  return figures;
}

std::optional<std::uint64_t> FiguresReader::read_xid_errors(const NvmlTable& table, Device device) {
  if (events_ == Events::kNotAsked) {
    const bool comes = set_.open(table, device, NVML_EVENT_XID_CRITICAL_ERROR);
    events_ = comes ? Events::kComing : Events::kNone;
  }
  if (events_ == Events::kNone) return std::nullopt;
  for (int i = 0; i < kMostEvents; ++i) {
    nvmlEventData_t event{};
    if (table.events.wait(set_.get(), &event, 0) != NVML_SUCCESS) break;
    if (event.eventType == NVML_EVENT_XID_CRITICAL_ERROR) ++xid_errors_;
  }
  return xid_errors_;
}

std::optional<std::vector<GpuFigures::ProcessLoad>> FiguresReader::read_processes(
    const NvmlTable& table, Device device) {
  if (table.process_utilization == nullptr) return std::nullopt;
  unsigned count = 0;
  std::vector<nvmlProcessUtilizationSample_t> samples;
  nvmlReturn_t r = table.process_utilization(device, nullptr, &count, processes_since_us_);
  if (r == NVML_ERROR_INSUFFICIENT_SIZE && count > 0) {
    samples.resize(std::min(count + 16, kMostSamples));
    count = static_cast<unsigned>(samples.size());
    r = table.process_utilization(device, samples.data(), &count, processes_since_us_);
  }
  // No process has computed since then.
  if (r == NVML_ERROR_NOT_FOUND) return std::vector<GpuFigures::ProcessLoad>();
  if (r != NVML_SUCCESS) return std::nullopt;
  samples.resize(std::min<std::size_t>(count, samples.size()));
  std::map<unsigned, unsigned> sums;
  std::set<unsigned long long> times;
  for (const nvmlProcessUtilizationSample_t& sample : samples) {
    sums[sample.pid] += std::min(sample.smUtil, 100U);
    times.insert(sample.timeStamp);
    processes_since_us_ = std::max(processes_since_us_, sample.timeStamp);
  }
  std::vector<GpuFigures::ProcessLoad> loads;
  for (const auto& [pid, sum] : sums) {
    const auto load = static_cast<int>(sum / static_cast<unsigned>(times.size()));
    loads.push_back({static_cast<pid_t>(pid), std::min(load, 100)});
  }
  return loads;
}

}  // namespace gpurota::nvml
