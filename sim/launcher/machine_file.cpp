#include "sim/launcher/machine_file.h"

#include <fmt/format.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <set>

#include <unistd.h>

#define TOML_EXCEPTIONS 0
#include "base/bytes.h"
#include "sim/state/host_memory.h"

#include <toml++/toml.h>

namespace gpurota::sim {
namespace {

template <class T>
using Set = std::set<T>;

// One table of the file. Its functions return an error for a missing or wrong value.
class Table {
 public:
  Table(const toml::table& table, std::string path, std::string where)
      : table_(table), path_(std::move(path)), where_(std::move(where)) {}

  tl::unexpected<Error> wrong(std::string_view key, std::string_view why) const {
    const toml::node* node = table_.get(key);
    const auto line = node != nullptr ? node->source().begin.line : table_.source().begin.line;
    return fail(Code::kInvalid, fmt::format("{}:{}: {}{}: {}", path_, line, where_, key, why));
  }

  Result<void> only(const Set<std::string_view>& known) const {
    for (const auto& [key, node] : table_) {
      if (known.count(key.str()) == 0) return wrong(key.str(), "there is no such key");
    }
    return {};
  }

  Result<std::string> text(std::string_view key, const char* otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) {
      if (otherwise == nullptr) return wrong(key, "is missing");
      return std::string(otherwise);
    }
    const auto value = node->value<std::string>();
    if (!value) return wrong(key, "must be a string");
    return *value;
  }

  Result<std::uint64_t> bytes(std::string_view key, const char* otherwise) const {
    GPUROTA_ASSIGN_OR_RETURN(const std::string written, text(key, otherwise));
    const auto amount = parse_bytes(written);
    if (!amount) return wrong(key, amount.error().message);
    return amount->count();
  }

  Result<int> number(std::string_view key, int otherwise, int least, int most) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<std::int64_t>();
    if (!value) return wrong(key, "must be a whole number");
    if (*value < least || *value > most) {
      return wrong(key, fmt::format("must be from {} to {}", least, most));
    }
    return static_cast<int>(*value);
  }

  Result<bool> flag(std::string_view key, bool otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<bool>();
    if (!value) return wrong(key, "must be true or false");
    return *value;
  }

  const toml::table& raw() const { return table_; }
  const std::string& path() const { return path_; }

 private:
  const toml::table& table_;
  std::string path_, where_;
};

void copy_text(char* out, std::size_t size, const std::string& text) {
  std::snprintf(out, size, "%s", text.c_str());
}

// Derives the UUID from the machine's name and the index: the same machine file gives the same
// UUIDs, so that tests and leases can name GPUs.
void make_uuid(DeviceConfig& device, const std::string& machine, int index, const char* kind) {
  std::uint64_t state = 1469598103934665603ULL;  // FNV-1a over what identifies the device
  for (const char c : machine + "/" + kind + std::to_string(index)) {
    state = (state ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  for (std::uint8_t& byte : device.uuid_bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  const std::uint8_t* b = device.uuid_bytes;
  const std::string text = fmt::format(
      "{}-{:02x}{:02x}{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-"
      "{:02x}{:02x}{:02x}{:02x}{:02x}{:02x}",
      kind, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
      b[14], b[15]);
  copy_text(device.uuid, sizeof device.uuid, text);
}

int architecture_of(int major, int minor) {
  if (major >= 10) return 10;
  if (major == 9) return 9;
  if (major == 8) return minor == 9 ? 8 : 7;
  if (major == 7) return minor >= 5 ? 6 : 5;
  return 4;
}

Result<void> read_sizes(const Table& table, DeviceConfig& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const bool unified, table.flag("unified", false));
  gpu.unified = unified ? 1 : 0;
  if (unified && !table.raw().contains("memory")) {
    gpu.memory_bytes = host_bytes();
  } else {
    GPUROTA_ASSIGN_OR_RETURN(gpu.memory_bytes, table.bytes("memory", nullptr));
  }
  if (!unified || table.raw().contains("reserved")) {
    GPUROTA_ASSIGN_OR_RETURN(gpu.reserved_bytes, table.bytes("reserved", "256 MiB"));
  }
  GPUROTA_ASSIGN_OR_RETURN(gpu.context_bytes, table.bytes("context", "400 MiB"));
  GPUROTA_ASSIGN_OR_RETURN(gpu.module_bytes, table.bytes("module", "2 MiB"));
  GPUROTA_ASSIGN_OR_RETURN(gpu.bar1_bytes, table.bytes("bar1", "256 MiB"));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t l2, table.bytes("l2", "4 MiB"));
  gpu.l2_bytes = static_cast<int>(l2);
  if (gpu.reserved_bytes >= gpu.memory_bytes) return table.wrong("reserved", "leaves no memory");
  return {};
}

Result<void> read_place(const Table& table, DeviceConfig& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string pci, table.text("pci", "0000:01:00.0"));
  if (pci != "none" &&
      std::sscanf(pci.c_str(), "%x:%x:%x", &gpu.pci_domain, &gpu.pci_bus, &gpu.pci_device) != 3) {
    return table.wrong("pci", "must look like 0000:01:00.0, or be none");
  }
  gpu.has_pci = pci == "none" ? 0 : 1;
  GPUROTA_ASSIGN_OR_RETURN(const int id, table.number("pci_device_id", 0, 0, INT_MAX));
  gpu.pci_device_id = static_cast<std::uint32_t>(id);
  GPUROTA_ASSIGN_OR_RETURN(const bool peer, table.flag("peer_access", false));
  GPUROTA_ASSIGN_OR_RETURN(const bool ecc, table.flag("ecc", false));
  gpu.peer_access = peer ? 1 : 0;
  gpu.ecc = ecc ? 1 : 0;
  GPUROTA_ASSIGN_OR_RETURN(const std::string mode, table.text("compute_mode", "default"));
  if (mode == "default") {
    gpu.compute_mode = 0;
  } else if (mode == "prohibited") {
    gpu.compute_mode = 2;
  } else if (mode == "exclusive_process") {
    gpu.compute_mode = 3;
  } else {
    return table.wrong("compute_mode", "must be default, prohibited or exclusive_process");
  }
  return {};
}

// Reads what NVML lists about processes.
Result<void> read_lists(const Table& table, DeviceConfig& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string lists, table.text("process_lists", "memory"));
  if (lists == "memory") {
    gpu.process_figures = 2;
  } else if (lists == "processes") {
    gpu.process_figures = 1;
  } else if (lists != "none") {
    return table.wrong("process_lists", "must be memory, processes or none");
  }
  return {};
}

// Reads the links of the GPU at `position` among the `count` GPUs of one table; `index` is its
// number on the machine.
Result<void> read_links(const Table& table, int position, int count, int index, DeviceConfig& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const int joined, table.number("nvlink_joins", 0, 0, kMaxDevices));
  if (joined == 1) return table.wrong("nvlink_joins", "one GPU has nobody to be joined with");
  if (joined > 0) gpu.nvlink_group = index - position % joined + 1;
  GPUROTA_ASSIGN_OR_RETURN(const int nodes, table.number("numa_nodes", 1, 1, kMaxDevices));
  gpu.numa_node = position * nodes / count;
  return {};
}

Result<void> read_speed(const Table& table, DeviceConfig& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string capability, table.text("capability", "9.0"));
  if (std::sscanf(capability.c_str(), "%d.%d", &gpu.capability_major, &gpu.capability_minor) != 2) {
    return table.wrong("capability", "must look like \"9.0\"");
  }
  gpu.architecture = architecture_of(gpu.capability_major, gpu.capability_minor);
  GPUROTA_ASSIGN_OR_RETURN(gpu.multiprocessors, table.number("multiprocessors", 16, 1, 1024));
  GPUROTA_ASSIGN_OR_RETURN(gpu.clock_khz, table.number("clock_mhz", 1500, 1, 10000));
  GPUROTA_ASSIGN_OR_RETURN(gpu.memory_clock_khz, table.number("memory_clock_mhz", 1000, 1, 100000));
  gpu.clock_khz *= 1000;
  gpu.memory_clock_khz *= 1000;
  GPUROTA_ASSIGN_OR_RETURN(gpu.bus_width_bits, table.number("bus_width_bits", 256, 1, 65536));
  GPUROTA_ASSIGN_OR_RETURN(gpu.power_limit_mw, table.number("power_limit_w", 300, 1, 10000));
  gpu.power_limit_mw *= 1000;
  const bool is_large = gpu.capability_major >= 9 || gpu.capability_minor == 0;
  gpu.threads_per_multiprocessor = is_large ? 2048 : 1536;
  gpu.blocks_per_multiprocessor = is_large ? 32 : 24;
  gpu.shared_per_multiprocessor = is_large ? 233472 : 102400;
  gpu.shared_per_block_optin = gpu.shared_per_multiprocessor - 1024;
  gpu.copy_engines = is_large ? 3 : 2;
  gpu.temperature_c = 35;
  gpu.power_mw = gpu.power_limit_mw / 10;
  gpu.persistence = 1;
  return {};
}

Result<void> add_instances(const Table& table, MachineState& state, int parent) {
  const toml::array* instances = table.raw()["mig"].as_array();
  if (instances == nullptr) {
    if (table.raw().contains("mig")) return table.wrong("mig", "must be [[gpu.mig]]");
    return {};
  }
  std::uint64_t left = state.device[parent].memory_bytes - state.device[parent].reserved_bytes;
  std::uint32_t position = 0;
  for (const toml::node& node : *instances) {
    if (!node.is_table()) return table.wrong("mig", "must be [[gpu.mig]]");
    const Table instance(*node.as_table(), table.path(), "gpu.mig.");
    GPUROTA_TRY(instance.only({"profile", "memory", "multiprocessors", "uuid"}));
    if (state.device_count == kMaxDevices) return table.wrong("mig", "too many devices");
    const int index = state.device_count++;
    DeviceConfig& device = state.device[index];
    device = state.device[parent];
    GPUROTA_ASSIGN_OR_RETURN(const std::string profile, instance.text("profile", nullptr));
    copy_text(device.name, sizeof device.name,
              fmt::format("{} MIG {}", state.device[parent].name, profile));
    GPUROTA_ASSIGN_OR_RETURN(device.memory_bytes, instance.bytes("memory", nullptr));
    GPUROTA_ASSIGN_OR_RETURN(device.multiprocessors,
                             instance.number("multiprocessors", 16, 1, 1024));
    if (device.memory_bytes > left) return instance.wrong("memory", "more than the GPU has left");
    left -= device.memory_bytes;
    device.reserved_bytes = 0;
    device.parent = parent;
    device.mig_enabled = 0;
    device.mig_position = position++;
    device.gpu_instance = position;
    device.compute_instance = 0;
    make_uuid(device, state.machine, index, "MIG");
    GPUROTA_ASSIGN_OR_RETURN(const std::string uuid, instance.text("uuid", device.uuid));
    copy_text(device.uuid, sizeof device.uuid, uuid);
    state.device[parent].mig_enabled = 1;
  }
  return {};
}

Result<void> add_gpu(const Table& table, MachineState& state) {
  GPUROTA_TRY(table.only({"count",
                          "name",
                          "memory",
                          "reserved",
                          "context",
                          "module",
                          "capability",
                          "multiprocessors",
                          "clock_mhz",
                          "memory_clock_mhz",
                          "bus_width_bits",
                          "l2",
                          "bar1",
                          "pci",
                          "pci_device_id",
                          "power_limit_w",
                          "ecc",
                          "peer_access",
                          "compute_mode",
                          "nvlink_joins",
                          "numa_nodes",
                          "unified",
                          "process_lists",
                          "mig"}));
  GPUROTA_ASSIGN_OR_RETURN(const int count, table.number("count", 1, 1, kMaxDevices));
  for (int i = 0; i < count; ++i) {
    if (state.device_count == kMaxDevices) return table.wrong("count", "too many devices");
    const int index = state.device_count++;
    DeviceConfig& gpu = state.device[index];
    GPUROTA_ASSIGN_OR_RETURN(const std::string name, table.text("name", nullptr));
    copy_text(gpu.name, sizeof gpu.name, name);
    gpu.parent = -1;
    gpu.gpu_instance = gpu.compute_instance = UINT32_MAX;
    GPUROTA_TRY(read_sizes(table, gpu));
    GPUROTA_TRY(read_place(table, gpu));
    GPUROTA_TRY(read_lists(table, gpu));
    GPUROTA_TRY(read_speed(table, gpu));
    GPUROTA_TRY(read_links(table, i, count, index, gpu));
    gpu.pci_bus += static_cast<std::uint32_t>(i) * 8;
    make_uuid(gpu, state.machine, index, "GPU");
    GPUROTA_TRY(add_instances(table, state, index));
  }
  return {};
}

Result<void> read_machine(const Table& table, MachineState& state) {
  GPUROTA_TRY(table.only({"name", "driver_version", "cuda_version", "host_budget",
                          "release_delay_ms", "hold_for_children", "gpu"}));
  GPUROTA_ASSIGN_OR_RETURN(const std::string name, table.text("name", nullptr));
  copy_text(state.machine, sizeof state.machine, name);
  GPUROTA_ASSIGN_OR_RETURN(const std::string driver, table.text("driver_version", "580.95.05"));
  copy_text(state.driver_version, sizeof state.driver_version, driver);
  GPUROTA_ASSIGN_OR_RETURN(const std::string cuda, table.text("cuda_version", "13.0"));
  int major = 0, minor = 0;
  if (std::sscanf(cuda.c_str(), "%d.%d", &major, &minor) != 2) {
    return table.wrong("cuda_version", "must look like \"13.0\"");
  }
  state.cuda_version = major * 1000 + minor * 10;
  state.host_budget_bytes = host_bytes_available() / 10 * 9;
  if (table.raw().contains("host_budget")) {
    GPUROTA_ASSIGN_OR_RETURN(state.host_budget_bytes, table.bytes("host_budget", nullptr));
  }
  GPUROTA_ASSIGN_OR_RETURN(const int delay, table.number("release_delay_ms", 0, 0, 3600000));
  state.release_delay_ns = static_cast<std::uint64_t>(delay) * 1000000U;
  GPUROTA_ASSIGN_OR_RETURN(const bool hold, table.flag("hold_for_children", false));
  state.hold_for_children = hold ? 1 : 0;

  const toml::array* gpus = table.raw()["gpu"].as_array();
  if (gpus == nullptr || gpus->empty()) return table.wrong("gpu", "at least one [[gpu]] is needed");
  for (const toml::node& node : *gpus) {
    if (!node.is_table()) return table.wrong("gpu", "must be [[gpu]]");
    GPUROTA_TRY(add_gpu(Table(*node.as_table(), table.path(), "gpu."), state));
  }
  return {};
}

}  // namespace

Result<void> read_machine_file(const std::string& path, MachineState* out) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    const auto line = error.source().begin.line;
    return fail(Code::kInvalid, fmt::format("{}:{}: {}", path, line, error.description()));
  }
  return read_machine(Table(parsed.table(), path, ""), *out);
}

std::string machines_directory() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return GPUROTA_SIM_MACHINES;
  std::string here(self, static_cast<std::size_t>(length));
  here.erase(here.rfind('/'));
  for (const std::string& candidate : {here + "/machines", here + "/../share/gpurota/machines"}) {
    if (::access((candidate + "/demo.toml").c_str(), R_OK) == 0) return candidate;
  }
  return GPUROTA_SIM_MACHINES;
}

Result<std::string> find_machine(const std::string& path_or_name) {
  const bool is_path =
      path_or_name.find('/') != std::string::npos ||
      (path_or_name.size() > 5 && path_or_name.compare(path_or_name.size() - 5, 5, ".toml") == 0);
  const std::string path =
      is_path ? path_or_name : machines_directory() + "/" + path_or_name + ".toml";
  if (::access(path.c_str(), R_OK) == 0) return path;
  if (is_path) return fail_errno("cannot read " + path, errno);
  return fail(Code::kNotFound,
              fmt::format("there is no machine \"{}\" in {}: `gpurota-sim list` shows those there "
                          "are, a path to a .toml file works as well",
                          path_or_name, machines_directory()));
}

}  // namespace gpurota::sim
