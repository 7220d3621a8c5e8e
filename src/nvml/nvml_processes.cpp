#include "nvml/nvml_processes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

namespace gpurota::nvml {
namespace {

// Larger than any layout a driver has used, so that none writes beyond the buffer.
constexpr std::size_t kMostEntryBytes = 32;
constexpr unsigned kFirstGuess = 64;
constexpr int kTries = 8;

using Figures = std::map<pid_t, std::optional<Bytes>>;

// Drivers 535.43 to 535.97 answer _v3 with longer entries than all others before and after.
bool has_odd_v3(const std::string& driver_version) {
  int branch = 0, minor = 0;
  return std::sscanf(driver_version.c_str(), "%d.%d", &branch, &minor) == 2 && branch == 535 &&
         minor < 98;
}

void add(Figures& figures, pid_t pid, unsigned long long used) {
  if (pid == 0) return;
  const auto [at, is_new] = figures.try_emplace(pid);
  if (used == NVML_VALUE_NOT_AVAILABLE_U64) return;
  at->second = at->second.value_or(Bytes()) + Bytes(used);
}

template <class Entry>
nvmlReturn_t list(ProcessLister::Function function, Device device, Figures& figures) {
  std::vector<unsigned char> buffer;
  nvmlReturn_t r = NVML_ERROR_INSUFFICIENT_SIZE;
  unsigned count = kFirstGuess;
  // Processes may start while we make room for them.
  for (int i = 0; i < kTries && r == NVML_ERROR_INSUFFICIENT_SIZE; ++i) {
    const unsigned room = count + count / 4;
    buffer.resize(room * kMostEntryBytes);
    count = room;
    r = function(device, &count, buffer.data());
    if (r == NVML_ERROR_INSUFFICIENT_SIZE) count = std::max(count, room) + 1;
    if (r == NVML_SUCCESS) count = std::min(count, room);
  }
  if (r != NVML_SUCCESS) return r;
  for (unsigned i = 0; i < count; ++i) {
    Entry entry{};
    std::memcpy(&entry, buffer.data() + i * sizeof entry, sizeof entry);
    add(figures, static_cast<pid_t>(entry.pid), entry.usedGpuMemory);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t list_any(const ProcessLister& lister, Device device, bool skip_v3, Figures& figures) {
  nvmlReturn_t r = NVML_ERROR_FUNCTION_NOT_FOUND;
  if (lister.v3 != nullptr && !skip_v3) r = list<nvmlProcessInfo_v2_t>(lister.v3, device, figures);
  if (is_not_there(r) && lister.v2 != nullptr)
    r = list<nvmlProcessInfo_v2_t>(lister.v2, device, figures);
  if (is_not_there(r) && lister.v1 != nullptr)
    r = list<nvmlProcessInfo_v1_t>(lister.v1, device, figures);
  return r;
}

}  // namespace

bool is_not_there(nvmlReturn_t r) {
  return r == NVML_ERROR_FUNCTION_NOT_FOUND || r == NVML_ERROR_NOT_SUPPORTED ||
         r == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t read_processes(const NvmlTable& table, Device device,
                            const std::string& driver_version, std::vector<GpuProcess>& processes) {
  const bool skip_v3 = has_odd_v3(driver_version);
  Figures compute, graphics, mps;
  const nvmlReturn_t r = list_any(table.compute, device, skip_v3, compute);
  if (r != NVML_SUCCESS) return r;
  for (const auto& [lister, figures] :
       {std::pair(&table.graphics, &graphics), std::pair(&table.mps, &mps)}) {
    const nvmlReturn_t other = list_any(*lister, device, skip_v3, *figures);
    if (other != NVML_SUCCESS && !is_not_there(other) && other != NVML_ERROR_NO_PERMISSION)
      return other;
  }
  std::map<pid_t, GpuProcess> merged;
  for (const Figures* figures : {&compute, &graphics, &mps}) {
    for (const auto& [pid, used] : *figures) {
      GpuProcess& process =
          merged.try_emplace(pid, GpuProcess{pid, std::nullopt, true}).first->second;
      process.used = std::max(process.used, used);
      if (figures != &graphics) process.graphics = false;
    }
  }
  processes.clear();
  for (const auto& [pid, process] : merged) processes.push_back(process);
  return NVML_SUCCESS;
}

nvmlReturn_t read_compute_pids(const NvmlTable& table, Device device,
                               const std::string& driver_version, std::vector<pid_t>& pids) {
  Figures compute;
  const nvmlReturn_t r = list_any(table.compute, device, has_odd_v3(driver_version), compute);
  for (const auto& [pid, used] : compute) pids.push_back(pid);
  return r;
}

std::optional<std::size_t> count_mps_clients(const NvmlTable& table, Device device,
                                             const std::string& driver_version) {
  Figures clients;
  if (list_any(table.mps, device, has_odd_v3(driver_version), clients) != NVML_SUCCESS)
    return std::nullopt;
  return clients.size();
}

}  // namespace gpurota::nvml
