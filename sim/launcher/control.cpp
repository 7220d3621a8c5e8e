#include "sim/launcher/control.h"

#include "base/bytes.h"
#include "sim/launcher/failure.h"
#include "sim/launcher/machine_file.h"
#include "sim/state/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <dirent.h>

namespace gpurota::sim {
namespace {

std::unique_ptr<Machine> open_or_say(const std::string& dir) {
  auto machine = Machine::open(dir);
  if (!machine) {
    (void)failed(dir.empty() ? "not on a simulated machine: run inside one, or name it with --dir"
                             : "there is no machine in " + dir);
  }
  return machine;
}

Result<std::uint64_t> parse_number(const std::string& text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] == '-') {
    return fail(Code::kInvalid, "\"" + text + "\" is not a whole number");
  }
  return value;
}

Result<void> change_gpu(Machine& machine, int device, const std::string& key,
                        const std::string& value) {
  DeviceFaults& faults = machine.faults(device);
  DeviceConfig& config = machine.state().device[device];
  if (key == "copy_rate" || key == "hidden") {
    const auto size = value == "0" ? Result<Bytes>(Bytes(0)) : parse_bytes(value);
    if (!size) return tl::unexpected<Error>(size.error());
    (key == "hidden" ? faults.hidden_bytes : faults.copy_bytes_per_second) = size->count();
    return {};
  }
  if (key == "fail_allocation") {
    const auto colon = value.find(':');
    GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t which, parse_number(value.substr(0, colon)));
    std::uint64_t count = which == 0 ? 0 : 1;
    if (colon != std::string::npos) {
      GPUROTA_ASSIGN_OR_RETURN(count, parse_number(value.substr(colon + 1)));
    }
    const MachineLock lock(machine.state());
    faults.fail_after = static_cast<std::int64_t>(which) - 1;
    faults.fail_count = static_cast<std::int64_t>(count);
    return {};
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t number, parse_number(value));
  if (key == "lost") {
    faults.lost = number != 0 ? 1 : 0;
  } else if (key == "hide_processes") {
    faults.hides_processes = number != 0 ? 1 : 0;
  } else if (key == "utilisation") {
    faults.load_permille = static_cast<std::uint32_t>(std::min<std::uint64_t>(number, 100) * 10);
  } else if (key == "flip_bits") {
    faults.flip_bits = static_cast<std::int32_t>(std::min<std::uint64_t>(number, 1'000'000));
  } else if (key == "ecc_errors") {
    faults.ecc_errors = number;
  } else if (key == "xid") {
    faults.xid = static_cast<std::uint32_t>(number);
    ++faults.xid_count;
  } else if (key == "temperature") {
    config.temperature_c = static_cast<int>(number);
  } else if (key == "power_w") {
    config.power_mw = static_cast<int>(number * 1000);
  } else if (key == "compute_mode") {
    config.compute_mode = static_cast<int>(number);
  } else {
    return fail(Code::kInvalid,
                "a GPU has no \"" + key +
                    "\": it has lost, fail_allocation, flip_bits, copy_rate, hidden, "
                    "hide_processes, utilisation, ecc_errors, xid, temperature, power_w and "
                    "compute_mode");
  }
  return {};
}

Result<void> change_one(Machine& machine, const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos) {
    return fail(Code::kInvalid, "\"" + setting + "\" is not KEY=VALUE");
  }
  const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
  MachineState& state = machine.state();
  int device = -1, length = 0;
  if (std::sscanf(key.c_str(), "gpu%d.%n", &device, &length) == 1 && length > 0) {
    if (device < 0 || device >= state.device_count) {
      return fail(Code::kNotFound, fmt::format("there is no gpu{}: `gpurota-sim show`", device));
    }
    return change_gpu(machine, device, key.substr(static_cast<std::size_t>(length)), value);
  }
  if (key == "host_budget") {
    GPUROTA_ASSIGN_OR_RETURN(const Bytes budget, parse_bytes(value));
    state.host_budget_bytes = budget.count();
    return {};
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t number, parse_number(value));
  if (key == "release_delay_ms") {
    state.release_delay_ns = number * 1'000'000;
  } else if (key == "park_delay_ms") {
    state.park_delay_ns = number * 1'000'000;
  } else if (key == "hold_for_children") {
    state.hold_for_children = number != 0 ? 1 : 0;
  } else {
    return fail(Code::kInvalid, "a machine has no \"" + key +
                                    "\": it has release_delay_ms, hold_for_children, "
                                    "park_delay_ms, host_budget and gpuN.KEY");
  }
  return {};
}

}  // namespace

int list_machines() {
  const std::string where = machines_directory();
  std::vector<std::string> names;
  if (DIR* dir = ::opendir(where.c_str())) {
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name.size() > 5 && name.compare(name.size() - 5, 5, ".toml") == 0) {
        names.push_back(name.substr(0, name.size() - 5));
      }
    }
    ::closedir(dir);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) fmt::print("{}\n", name);
  return names.empty() ? failed("no machines in " + where) : 0;
}

int show_machine(const std::string& dir) {
  const auto machine = open_or_say(dir);
  if (!machine) return kExitFailed;
  const MachineState& state = machine->state();
  fmt::print("machine {}, driver {}\n", state.machine, state.driver_version);
  for (int i = 0; i < state.device_count; ++i) {
    const DeviceConfig& device = state.device[i];
    const DeviceTotals totals = machine->totals(i);
    fmt::print("gpu{} {} {}\n    {} of {} used{}\n", i, device.name, device.uuid,
               to_string(Bytes(totals.used)), to_string(Bytes(totals.total)),
               machine->faults(i).lost.load() != 0 ? ", LOST" : "");
    for (const ProcessUse& process : machine->processes(i)) {
      fmt::print("    pid {}: {}, {} context(s)\n", process.pid, to_string(Bytes(process.bytes)),
                 process.contexts);
    }
  }
  return 0;
}

int change_machine(const std::string& dir, const std::vector<std::string>& settings) {
  const auto machine = open_or_say(dir);
  if (!machine) return kExitFailed;
  if (settings.empty()) return failed("nothing to set: write KEY=VALUE");
  for (const std::string& setting : settings) {
    if (const auto result = change_one(*machine, setting); !result) {
      return failed(result.error().message);
    }
  }
  return 0;
}

int show_unsupported(const std::string& dir) {
  const auto machine = open_or_say(dir);
  if (!machine) return kExitFailed;
  for (const UnsupportedCall& call : machine->state().unsupported) {
    if (call.name[0] != '\0') fmt::print("{} {}\n", call.count.load(), call.name);
  }
  return 0;
}

}  // namespace gpurota::sim
