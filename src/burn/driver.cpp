#include "burn/driver.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

namespace gpurota::burn {
namespace {

template <class Function>
void look_up(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
}

// `name` is null-terminated and has the driver's name for this version of the function.
#define BURN_FUNCTIONS(X)                         \
  X(cuInit, "cuInit")                             \
  X(cuGetErrorName, "cuGetErrorName")             \
  X(cuDeviceGetCount, "cuDeviceGetCount")         \
  X(cuDeviceGet, "cuDeviceGet")                   \
  X(cuDeviceGetName, "cuDeviceGetName")           \
  X(cuDeviceGetUuid, "cuDeviceGetUuid")           \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute") \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2")      \
  X(cuCtxCreate, "cuCtxCreate_v2")                \
  X(cuCtxDestroy, "cuCtxDestroy_v2")              \
  X(cuMemGetInfo, "cuMemGetInfo_v2")              \
  X(cuMemAlloc, "cuMemAlloc_v2")                  \
  X(cuMemFree, "cuMemFree_v2")                    \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2")              \
  X(cuMemcpyDtoH, "cuMemcpyDtoH_v2")              \
  X(cuModuleLoadData, "cuModuleLoadData")         \
  X(cuModuleGetFunction, "cuModuleGetFunction")   \
  X(cuLaunchKernel, "cuLaunchKernel")             \
  X(cuStreamCreate, "cuStreamCreate")             \
  X(cuStreamSynchronize, "cuStreamSynchronize")   \
  X(cuEventCreate, "cuEventCreate")               \
  X(cuEventRecord, "cuEventRecord")               \
  X(cuEventSynchronize, "cuEventSynchronize")     \
  X(cuEventElapsedTime, "cuEventElapsedTime")

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

bool is_named(const Gpu& gpu, std::string_view id) {
  if (id == std::to_string(gpu.index)) return true;
  if (!id.starts_with("GPU-") && !id.starts_with("MIG-")) return false;
  return id.size() > 4 && std::string_view(gpu.uuid).substr(4).starts_with(id.substr(4));
}

}  // namespace

Result<void> Driver::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  (void)cuGetErrorName(result, &name);
  // Simulated memory takes real host memory when work touches it; a real driver's does not.
  const bool simulated =
      result == CUDA_ERROR_OUT_OF_MEMORY && std::getenv("GPUROTA_SIM_DIR") != nullptr;
  return fail(
      Code::kUnavailable,
      fmt::format("{}: {}{}", call, name == nullptr ? "unknown error" : display_text(name),
                  simulated ? "; the simulated machine may use less real memory than its GPUs "
                              "have (host_budget in gpurota-sim(1)): try --memory 1G"
                            : ""),
      static_cast<int>(result));
}

Result<Driver> load_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(Code::kUnavailable,
                fmt::format("no NVIDIA driver: cannot load libcuda.so.1 ({}). It comes with the "
                            "driver; see 'gpurota doctor' for the rest",
                            reason == nullptr ? "no reason given" : reason));
  }
  Driver driver;
  const char* missing = nullptr;
#define BURN_LOOK_UP(function, symbol)       \
  look_up(library, symbol, driver.function); \
  if (driver.function == nullptr) missing = symbol;
  BURN_FUNCTIONS(BURN_LOOK_UP)
#undef BURN_LOOK_UP
  if (missing != nullptr) {
    return fail(Code::kUnavailable,
                fmt::format("the NVIDIA driver is too old: its libcuda.so.1 has no {}", missing));
  }
  // Newer drivers have a function that answers for the MIG instance; the old one answers for the
  // GPU that contains it.
  decltype(driver.cuDeviceGetUuid) newer = nullptr;
  look_up(library, "cuDeviceGetUuid_v2", newer);
  if (newer != nullptr) driver.cuDeviceGetUuid = newer;
  return driver;
}

Result<std::vector<Gpu>> list_gpus(const Driver& driver) {
  GPUROTA_TRY(driver.check(driver.cuInit(0), "cuInit"));
  int count = 0;
  GPUROTA_TRY(driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.index = i;
    char name[256] = {};
    CUuuid uuid = {};
    GPUROTA_TRY(driver.check(driver.cuDeviceGet(&gpu.device, i), "cuDeviceGet"));
    GPUROTA_TRY(
        driver.check(driver.cuDeviceGetName(name, sizeof name - 1, gpu.device), "cuDeviceGetName"));
    GPUROTA_TRY(driver.check(driver.cuDeviceGetUuid(&uuid, gpu.device), "cuDeviceGetUuid"));
    gpu.name = display_text(name, 80);
    gpu.uuid = uuid_text(uuid);
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty()) {
    return fail(Code::kUnavailable, "no GPU is visible: look at CUDA_VISIBLE_DEVICES");
  }
  return gpus;
}

Result<std::vector<Gpu>> choose_gpus(const std::vector<Gpu>& all,
                                     const std::vector<std::string>& ids) {
  if (ids.empty()) return all;
  std::vector<bool> chosen(all.size(), false);
  for (const std::string& id : ids) {
    int found = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_named(all[i], id)) continue;
      chosen[i] = true;
      ++found;
    }
    if (found == 1) continue;
    return fail(found == 0 ? Code::kNotFound : Code::kInvalid,
                fmt::format("--gpu-ids: '{}' names {} of the {} GPUs that are visible here: give "
                            "an index from 0, or a UUID or its unique beginning",
                            display_text(id, 60), found == 0 ? "none" : "several", all.size()));
  }
  std::vector<Gpu> gpus;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (chosen[i]) gpus.push_back(all[i]);
  }
  return gpus;
}

Sensors::Sensors() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  nvmlReturn_t (*init)() = nullptr;
  look_up(library, "nvmlInit_v2", init);
  look_up(library, "nvmlDeviceGetHandleByUUID", by_uuid_);
  look_up(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", board_);
  look_up(library, "nvmlDeviceGetTemperature", temperature_);
  look_up(library, "nvmlDeviceGetPowerUsage", power_);
  if (init == nullptr || by_uuid_ == nullptr || init() != NVML_SUCCESS) return;
  look_up(library, "nvmlShutdown", shutdown_);
}

Sensors::~Sensors() {
  if (shutdown_ != nullptr) (void)shutdown_();
}

nvmlDevice_t Sensors::board_of(const Gpu& gpu) const {
  nvmlDevice_t device = nullptr;
  if (shutdown_ == nullptr) return nullptr;
  if (by_uuid_(gpu.uuid.c_str(), &device) == NVML_SUCCESS) return device;
  const std::string as_instance = "MIG-" + gpu.uuid.substr(4);
  nvmlDevice_t board = nullptr;
  if (board_ == nullptr || by_uuid_(as_instance.c_str(), &device) != NVML_SUCCESS ||
      board_(device, &board) != NVML_SUCCESS) {
    return nullptr;
  }
  return board;
}

std::optional<int> Sensors::temperature_c(const Gpu& gpu) const {
  nvmlDevice_t board = board_of(gpu);
  unsigned value = 0;
  if (board == nullptr || temperature_ == nullptr ||
      temperature_(board, NVML_TEMPERATURE_GPU, &value) != NVML_SUCCESS) {
    return std::nullopt;
  }
  return static_cast<int>(value);
}

std::optional<double> Sensors::power_watts(const Gpu& gpu) const {
  nvmlDevice_t board = board_of(gpu);
  unsigned milliwatts = 0;
  if (board == nullptr || power_ == nullptr || power_(board, &milliwatts) != NVML_SUCCESS) {
    return std::nullopt;
  }
  return milliwatts / 1000.0;
}

}  // namespace gpurota::burn
