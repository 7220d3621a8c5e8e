#include "nvml/nvml_probe.h"

#include "nvml/nvml_processes.h"
#include "nvml/nvml_topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

namespace gpurota::nvml {
namespace {

// A number from a function of NVML; nullopt if the function is missing or fails.
template <class Function>
std::optional<int> read_number(Function function, Device device) {
  unsigned number = 0;
  if (function == nullptr || function(device, &number) != NVML_SUCCESS) return std::nullopt;
  return static_cast<int>(number);
}

// A string from a function of NVML; empty if the function fails.
template <std::size_t kSize, class Read>
std::string read_string(Read read) {
  std::array<char, kSize> buffer{};
  if (read(buffer.data(), static_cast<unsigned>(buffer.size())) != NVML_SUCCESS) return "";
  buffer.back() = '\0';
  return buffer.data();
}

const char* name_of(nvmlComputeMode_t mode) {
  switch (mode) {
    case NVML_COMPUTEMODE_DEFAULT:
      return "default";
    case NVML_COMPUTEMODE_EXCLUSIVE_THREAD:
      return "exclusive_thread";
    case NVML_COMPUTEMODE_PROHIBITED:
      return "prohibited";
    case NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
      return "exclusive_process";
  }
  return "unknown";
}

}  // namespace

NvmlProbe::NvmlProbe(Loader loader) : loader_(std::move(loader)) {}

NvmlProbe::~NvmlProbe() {
  if (!begun_) return;
  figures_.clear();
  (void)table_->shutdown();
}

Result<void> NvmlProbe::begin() {
  if (begun_) return {};
  if (!table_) {
    GPUROTA_ASSIGN_OR_RETURN(table_, loader_());
  }
  if (const nvmlReturn_t r = table_->init(); r != NVML_SUCCESS) {
    return tl::unexpected<Error>(describe(r, "cannot use the NVIDIA driver"));
  }
  begun_ = true;
  driver_version_ =
      table_->driver_version == nullptr
          ? ""
          : read_string<NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE>(table_->driver_version);
  return {};
}

std::string NvmlProbe::text(nvmlReturn_t r) const {
  const char* text = table_->error_string == nullptr ? nullptr : table_->error_string(r);
  return text == nullptr ? fmt::format("NVML error {}", static_cast<int>(r)) : text;
}

Error NvmlProbe::describe(nvmlReturn_t r, const std::string& what) {
  Error error{Code::kUnavailable, static_cast<int>(r), fmt::format("{}: {}", what, text(r))};
  switch (r) {
    case NVML_ERROR_UNINITIALIZED:
      begun_ = false;  // somebody else in the process shut NVML down: begin again next time
      for (auto& [gpu, reader] : figures_) reader.forget();
      figures_.clear();
      break;
    case NVML_ERROR_DRIVER_NOT_LOADED:
      error.message +=
          ". Its kernel module is not loaded: run `modprobe nvidia`, or see `gpurota doctor`";
      break;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      error.message +=
          ". The driver was updated while its old kernel module was in use: reboot, or "
          "unload and load the nvidia modules, then restart gpurotad";
      break;
    case NVML_ERROR_NO_PERMISSION:
      error.code = Code::kDenied;
      error.message +=
          ". This user may not open /dev/nvidiactl and /dev/nvidia*: see `gpurota doctor`";
      break;
    default:
      break;
  }
  return error;
}

// Drivers of GPUs that use the machine's memory answer NOT_SUPPORTED (GB10), or zeros.
nvmlReturn_t NvmlProbe::read_memory(Device device, MaybeMemory& memory) const {
  memory.reset();
  if (table_->memory_v2 != nullptr) {
    nvmlMemory_v2_t info{};
    info.version = NVML_MEMORY_V2;
    if (table_->memory_v2(device, &info) == NVML_SUCCESS && info.total != 0) {
      memory = {Bytes(info.total) - Bytes(info.reserved), Bytes(info.used)};
      return NVML_SUCCESS;
    }
  }
  nvmlMemory_t info{};
  const nvmlReturn_t r = table_->memory_v1(device, &info);
  if (r == NVML_SUCCESS && info.total != 0) memory = {Bytes(info.total), Bytes(info.used)};
  return r == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : r;
}

nvmlReturn_t NvmlProbe::read_gpu(Device device, GpuInfo& gpu) const {
  gpu.uuid.value = read_string<NVML_DEVICE_UUID_BUFFER_SIZE>(
      [&](char* to, unsigned size) { return table_->uuid(device, to, size); });
  gpu.name = read_string<NVML_DEVICE_NAME_BUFFER_SIZE>(
      [&](char* to, unsigned size) { return table_->name(device, to, size); });
  MaybeMemory memory;
  const nvmlReturn_t r = read_memory(device, memory);
  gpu.memory = memory ? memory->total : Bytes();
  gpu.unified = !memory;
  return gpu.uuid.value.empty() && r == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : r;
}

void NvmlProbe::add_mig_instances(Device parent, GpuInfo& parent_info,
                                  std::vector<GpuInfo>& gpus) const {
  unsigned now = NVML_DEVICE_MIG_DISABLE, after_reset = 0, count = 0;
  if (table_->mig_mode == nullptr || table_->mig_count == nullptr ||
      table_->mig_by_index == nullptr ||
      table_->mig_mode(parent, &now, &after_reset) != NVML_SUCCESS ||
      now != NVML_DEVICE_MIG_ENABLE) {
    return;
  }
  parent_info.mig_enabled = true;
  if (table_->mig_count(parent, &count) != NVML_SUCCESS) return;
  int number = 0;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    // `count` is how many there could be. For instances that were not made the driver returns
    // NOT_FOUND.
    if (table_->mig_by_index(parent, i, &device) != NVML_SUCCESS) continue;
    GpuInfo instance = parent_info;
    instance.mig_enabled = false;
    instance.parent = parent_info.uuid;
    if (read_gpu(device, instance) != NVML_SUCCESS) continue;
    instance.index = number++;
    instance.gpu_instance = read_number(table_->gpu_instance_id, device);
    instance.compute_instance = read_number(table_->compute_instance_id, device);
    gpus.push_back(std::move(instance));
  }
}

Result<ports::DriverInfo> NvmlProbe::read_driver() {
  GPUROTA_TRY(begin());
  ports::DriverInfo driver;
  driver.driver_version = driver_version_;
  if (table_->cuda_version != nullptr) (void)table_->cuda_version(&driver.cuda_version);
  unsigned count = 0;
  if (const nvmlReturn_t r = table_->device_count(&count); r != NVML_SUCCESS) {
    return tl::unexpected<Error>(describe(r, "cannot count the GPUs"));
  }
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    GpuInfo gpu;
    nvmlReturn_t r = table_->device_by_index(i, &device);
    if (r == NVML_SUCCESS) r = read_gpu(device, gpu);
    if (r != NVML_SUCCESS)
      driver.problems.push_back(fmt::format("GPU {} does not answer: {}", i, text(r)));
  }
  return driver;
}

Result<std::vector<GpuInfo>> NvmlProbe::read_gpus() {
  GPUROTA_TRY(begin());
  unsigned count = 0;
  if (const nvmlReturn_t r = table_->device_count(&count); r != NVML_SUCCESS) {
    return tl::unexpected<Error>(describe(r, "cannot count the GPUs"));
  }
  struct Found {
    nvmlPciInfo_t pci{};
    bool has_pci = false;
    Device device = nullptr;
    GpuInfo info;
  };
  std::vector<Found> found;
  for (unsigned i = 0; i < count; ++i) {
    Found gpu;
    if (table_->device_by_index(i, &gpu.device) != NVML_SUCCESS ||
        read_gpu(gpu.device, gpu.info) != NVML_SUCCESS) {
      continue;  // read_driver() reports it
    }
    // A GPU that is on no PCI bus has no such address.
    gpu.has_pci = table_->pci_info(gpu.device, &gpu.pci) == NVML_SUCCESS;
    gpu.pci.busId[sizeof gpu.pci.busId - 1] = '\0';
    if (gpu.has_pci) gpu.info.pci = gpu.pci.busId;
    gpu.info.device_minor = read_number(table_->minor_number, gpu.device);
    if (table_->compute_capability != nullptr) {
      (void)table_->compute_capability(gpu.device, &gpu.info.compute_major,
                                       &gpu.info.compute_minor);
    }
    found.push_back(std::move(gpu));
  }
  // GPUs without an address come last, in the driver's order.
  const auto place = [](const Found& gpu) {
    return std::tuple(!gpu.has_pci, gpu.pci.domain, gpu.pci.bus, gpu.pci.device);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Found& a, const Found& b) { return place(a) < place(b); });
  std::vector<GpuInfo> gpus;
  int index = 0;
  for (Found& gpu : found) {
    gpu.info.index = index++;
    std::vector<GpuInfo> instances;
    add_mig_instances(gpu.device, gpu.info, instances);
    gpus.push_back(std::move(gpu.info));
    std::move(instances.begin(), instances.end(), std::back_inserter(gpus));
  }
  return gpus;
}

std::vector<GpuLink> NvmlProbe::read_links(const std::vector<GpuInfo>& gpus) {
  std::vector<std::pair<GpuUuid, Device>> devices;
  for (const GpuInfo& gpu : gpus) {
    Device device = nullptr;
    if (gpu.parent.value.empty() && begin() &&
        table_->device_by_uuid(gpu.uuid.value.c_str(), &device) == NVML_SUCCESS) {
      devices.emplace_back(gpu.uuid, device);
    }
  }
  return devices.size() < 2 ? std::vector<GpuLink>() : nvml::read_links(*table_, devices);
}

GpuSample NvmlProbe::read_sample(const GpuInfo& gpu) {
  GpuSample sample;
  sample.uuid = gpu.uuid;
  sample.total = gpu.memory;
  if (const auto begun = begin(); !begun) {
    sample.error = begun.error().message;
    return sample;
  }
  Device device = nullptr;
  MaybeMemory memory;
  const char* what = "cannot find the GPU";
  nvmlReturn_t r = table_->device_by_uuid(gpu.uuid.value.c_str(), &device);
  if (r == NVML_SUCCESS) {
    what = "cannot read its memory";
    r = read_memory(device, memory);
    // A GPU with memory of its own must report it: memory that is not reported is not free.
    if (r == NVML_SUCCESS && !memory && !gpu.unified) r = NVML_ERROR_NOT_SUPPORTED;
  }
  if (r == NVML_SUCCESS) {
    what = "cannot list its processes";
    r = read_processes(*table_, device, driver_version_, sample.processes);
    sample.lists_processes = r == NVML_SUCCESS;
    if (gpu.unified && is_not_there(r)) r = NVML_SUCCESS;
  }
  if (r != NVML_SUCCESS) {
    sample.error = describe(r, what).message;
    return sample;
  }
  if (memory) {
    sample.total = memory->total;
    sample.used = memory->used;
  }
  nvmlUtilization_t load{};
  if (table_->utilization != nullptr && table_->utilization(device, &load) == NVML_SUCCESS) {
    sample.load_percent = static_cast<int>(load.gpu);
  }
  return sample;
}

GpuFigures NvmlProbe::read_figures(const GpuInfo& gpu, bool processes) {
  Device device = nullptr;
  if (!begin()) return {};
  const nvmlReturn_t r = table_->device_by_uuid(gpu.uuid.value.c_str(), &device);
  return r == NVML_SUCCESS ? figures_[gpu.uuid].read(*table_, device, processes) : GpuFigures();
}

Result<std::vector<pid_t>> NvmlProbe::read_compute_pids(const GpuInfo& gpu) {
  GPUROTA_TRY(begin());
  Device device = nullptr;
  std::vector<pid_t> pids;
  nvmlReturn_t r = table_->device_by_uuid(gpu.uuid.value.c_str(), &device);
  if (r == NVML_SUCCESS) {
    r = nvml::read_compute_pids(*table_, device, driver_version_, pids);
  }
  if (r != NVML_SUCCESS) return tl::unexpected<Error>(describe(r, "cannot list its processes"));
  return pids;
}

std::vector<ports::GpuProbe::Setting> NvmlProbe::read_settings(const GpuInfo& gpu) {
  std::vector<Setting> settings;
  Device device = nullptr;
  if (!begin() || table_->device_by_uuid(gpu.uuid.value.c_str(), &device) != NVML_SUCCESS)
    return settings;
  nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
  if (table_->compute_mode != nullptr && table_->compute_mode(device, &mode) == NVML_SUCCESS) {
    settings.push_back({"compute_mode", name_of(mode)});
  }
  nvmlEnableState_t persistence = NVML_FEATURE_DISABLED;
  if (table_->persistence_mode != nullptr &&
      table_->persistence_mode(device, &persistence) == NVML_SUCCESS) {
    settings.push_back({"persistence_mode", persistence == NVML_FEATURE_ENABLED ? "on" : "off"});
  }
  unsigned now = 0, after_reset = 0;
  if (table_->mig_mode != nullptr && table_->mig_mode(device, &now, &after_reset) == NVML_SUCCESS) {
    std::string value = now == NVML_DEVICE_MIG_ENABLE ? "on" : "off";
    if (now != after_reset)
      value += after_reset == NVML_DEVICE_MIG_ENABLE ? ", on after a reset" : ", off after a reset";
    settings.push_back({"mig", value});
  }
  if (const auto clients = count_mps_clients(*table_, device, driver_version_)) {
    settings.push_back(
        {"mps",
         *clients == 0 ? "off" : fmt::format("{} client{}", *clients, *clients == 1 ? "" : "s")});
  }
  return settings;
}

Result<Device> NvmlProbe::limited_device(const GpuInfo& gpu) {
  if (auto begun = begin(); !begun) {
    begun.error().code = Code::kIo;  // kUnavailable: the driver never has limits
    return tl::unexpected<Error>(std::move(begun).error());
  }
  if (table_->set_memory_limits == nullptr || table_->memory_limits == nullptr) {
    return fail(Code::kUnavailable,
                fmt::format("driver {} has no memory limits of its own, which came with 615",
                            driver_version_));
  }
  Device device = nullptr;
  if (const nvmlReturn_t r = table_->device_by_uuid(gpu.uuid.value.c_str(), &device);
      r != NVML_SUCCESS) {
    Error error = describe(r, "cannot find the GPU");
    error.code = Code::kIo;
    return tl::unexpected<Error>(std::move(error));
  }
  return device;
}

Error NvmlProbe::describe_limits(nvmlReturn_t r, const std::string& what) {
  if (r == NVML_ERROR_NO_PERMISSION) {
    return {Code::kDenied, static_cast<int>(r), fmt::format("{}: {}", what, text(r))};
  }
  Error error = describe(r, what);
  // The answer for a group that has been removed, and for one without the controller dmem.
  if (r == NVML_ERROR_NOT_FOUND) {
    error.code = Code::kGone;
  } else if (r != NVML_ERROR_NOT_SUPPORTED && r != NVML_ERROR_FUNCTION_NOT_FOUND) {
    error.code = Code::kIo;
  }
  return error;
}

Result<ports::MemoryLimits> NvmlProbe::read_memory_limits(const GpuInfo& gpu,
                                                          const std::string& group) {
  GPUROTA_ASSIGN_OR_RETURN(const Device device, limited_device(gpu));
  nvmlGetMemoryLimits_v1_t limits{};
  limits.nameSpace = group.c_str();
  if (const nvmlReturn_t r = table_->memory_limits(device, &limits); r != NVML_SUCCESS) {
    return tl::unexpected<Error>(describe_limits(r, "the driver does not tell its memory limits"));
  }
  ports::MemoryLimits read{Bytes(limits.softLimit), std::nullopt, Bytes(limits.currentUsed)};
  if (limits.hardLimit != NVML_DEVICE_MEMORY_LIMIT_MAX) read.hard = Bytes(limits.hardLimit);
  return read;
}

Result<void> NvmlProbe::set_memory_limit(const GpuInfo& gpu, const std::string& group,
                                         std::optional<Bytes> hard) {
  GPUROTA_ASSIGN_OR_RETURN(const Device device, limited_device(gpu));
  nvmlSetMemoryLimits_v1_t limits{};
  limits.nameSpace = group.c_str();
  limits.hardLimit = hard ? hard->count() : NVML_DEVICE_MEMORY_LIMIT_MAX;
  if (const nvmlReturn_t r = table_->set_memory_limits(device, &limits); r != NVML_SUCCESS) {
    return tl::unexpected<Error>(describe_limits(r, "the driver does not take a memory limit"));
  }
  return {};
}

}  // namespace gpurota::nvml
