#include "daemon/doctor.h"

#include "base/preload.h"
#include "base/text.h"
#include "sys/machine_memory.h"

#include <fmt/format.h>

#include <chrono>

#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

using proto::Check;
using proto::CheckStatus;

Check ok(std::string name, std::string summary) {
  return {std::move(name), CheckStatus::kOk, std::move(summary), std::nullopt};
}
Check warning(std::string name, std::string summary, std::string remedy) {
  return {std::move(name), CheckStatus::kWarning, std::move(summary), std::move(remedy)};
}
Check error(std::string name, std::string summary, std::string remedy) {
  return {std::move(name), CheckStatus::kError, std::move(summary), std::move(remedy)};
}

// cuDeviceGetUuid_v2, the newest function that libgpurota calls itself, came with CUDA 11.4 (driver
// 470); a test compares this with the list of driver functions.
constexpr int kOldestCuda = 11040;
constexpr int kOldestMajor = 6;  // Pascal
// Users notice a round of the loop that takes this long.
constexpr Duration kLongRound = std::chrono::seconds(1);
// A budget is nearly used up when no more than 1/kNearlyPart of it is left.
constexpr std::uint64_t kNearlyPart = 10;

Check check_driver(const Examination& machine) {
  if (machine.driver_error) {
    return error("driver", machine.driver_error->message,
                 "install the NVIDIA driver, or load its module, and look at nvidia-smi");
  }
  if (!machine.driver) return error("driver", "no driver was found", "install the NVIDIA driver");
  const int cuda = machine.driver->cuda_version;
  const std::string summary =
      fmt::format("{}, CUDA {}", machine.driver->driver_version, machine.driver->cuda_text());
  if (cuda < kOldestCuda) {
    return error("driver", summary + " is too old", "install a driver for CUDA 11.4 or newer");
  }
  return ok("driver", summary);
}

Check check_memory(const std::string& name, const Examination::Gpu& gpu) {
  const std::string memory = to_string(gpu.info.memory);
  if (!gpu.info.unified) return ok(name, fmt::format("{}, {}", gpu.info.name, memory));
  if (gpu.info.memory.is_zero() || !gpu.sample.machine_available) {
    return warning(name, gpu.info.name + ", whose memory is not known",
                   "neither the driver nor /proc/meminfo says how much there is: only whole GPUs "
                   "can be leased");
  }
  return ok(name, fmt::format(
                      "{}, unified memory (experimental): the machine's {}, of which leases leave "
                      "{}; {} available now",
                      gpu.info.name, memory, to_string(gpu.reserve),
                      to_string(*gpu.sample.machine_available)));
}

std::vector<Check> check_gpu(const Examination::Gpu& gpu) {
  const std::string name = "gpu " + gpu.name;
  if (!gpu.sample.error.empty()) {
    return {error(name, gpu.sample.error,
                  "look at dmesg and nvidia-smi; the GPU is left out until "
                  "it answers")};
  }
  if (gpu.info.compute_major != 0 && gpu.info.compute_major < kOldestMajor) {
    return {error(name, fmt::format("{} is older than Pascal", gpu.info.name),
                  "gpurota needs compute capability 6.0")};
  }
  std::vector<Check> checks = {check_memory(name, gpu)};
  if (!gpu.sample.lists_processes) {
    checks.push_back(warning(
        name + " processes", "the driver does not list who uses the GPU",
        "use without a lease is not seen, and fillers do not start there; programs with libgpurota "
        "are counted by their own word"));
  }
  for (const auto& [key, value] : gpu.settings) {
    if (key == "compute_mode" && value != "default") {
      checks.push_back(warning(name + " compute mode", "is " + value + ": slices cannot share it",
                               fmt::format("nvidia-smi -i {} -c DEFAULT", gpu.info.index)));
    }
    if (key == "mps" && value != "off") {
      checks.push_back(warning(name + " MPS",
                               "a server runs: its clients' memory is counted as the "
                               "server's where the driver cannot tell them apart",
                               "stop it with: echo quit | nvidia-cuda-mps-control"));
    }
  }
  return checks;
}

// Memory of a GPU that the watch cannot attribute to any process.
std::vector<Check> check_unaccounted(const Examination& machine) {
  std::vector<Check> checks;
  for (const auto& [gpu, memory] : machine.unaccounted) {
    checks.push_back(warning(
        fmt::format("gpu {} memory", gpu),
        fmt::format("{} are used, and no process that the driver lists has them",
                    to_string(memory)),
        "look for programs that gpurotad cannot see, as in another pid namespace (fuser -v "
        "/dev/nvidia*), and for ended programs whose memory the driver keeps (nvidia-smi)"));
  }
  return checks;
}

Check check_processes(const Examination& machine) {
  for (const Examination::Gpu& gpu : machine.gpus) {
    for (const GpuProcess& process : gpu.sample.processes) {
      if (!process.used) {
        return warning(
            "per-process memory", "the driver does not report the memory of each process",
            "contexts and modules are then not charged; WSL and some vGPUs do not report it");
      }
    }
  }
  if (machine.hidden_processes) {
    return warning("processes", "/proc hides other users' processes (hidepid)",
                   "run gpurotad as root, or add its user to the gid= group of the mount");
  }
  return ok("processes", "visible");
}

Check check_cgroup(const Examination& machine) {
  if (machine.cgroup.empty()) {
    return warning("cgroup", "there is no cgroup v2",
                   "a lease's processes are followed by pidfd "
                   "instead; boot with systemd.unified_cgroup_hierarchy=1 to have both");
  }
  if (!machine.cgroup_writable) {
    return warning("cgroup", "cgroup v2 cannot be written here",
                   machine.root
                       ? "a lease's processes are followed by pidfd instead; run gpurotad outside "
                         "the container"
                       : "a lease's processes are followed by pidfd instead; to have both: "
                         "systemd-run --user --scope --property=Delegate=yes gpurotad");
  }
  return ok("cgroup", "v2, writable");
}

Check check_library(const Examination& machine) {
  if (machine.preload.empty()) {
    return error("library", "libgpurota.so was not found",
                 "install gpurota completely: without it --memory cannot be enforced");
  }
  if (!machine.preload_problem.empty()) {
    return error("library", fmt::format("{}: {}", machine.preload, machine.preload_problem),
                 "install gpurota where everybody may read it, such as /usr/local: a program that "
                 "cannot load the library has no limit");
  }
  if (!machine.preload_closed.empty()) {
    return warning(
        "library",
        fmt::format("{}: others may not use {}", machine.preload, machine.preload_closed),
        fmt::format("gpurota run refuses them a limit: chmod o+rX {}, or install gpurota where "
                    "everybody may read it, such as /usr/local",
                    machine.preload_closed));
  }
  if (machine.times_not_limited > 0) {
    return warning(
        "library",
        fmt::format(
            "{} time{} since gpurotad started it was loaded in a program and did not limit it",
            machine.times_not_limited, machine.times_not_limited == 1 ? "" : "s"),
        "gpurota events says which (not_limited); please report it, with what the program prints "
        "under GPUROTA_DEBUG=1");
  }
  if (machine.unhooked > 0) {
    return warning(
        "library",
        fmt::format("programs asked {} times for driver functions newer than this gpurota: {}",
                    machine.unhooked, fmt::join(machine.unhooked_names, ", ")),
        "they are counted by NVML only; install a newer gpurota");
  }
  return ok("library", machine.preload);
}

Check check_loop(const sys::LongestRounds& rounds) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const std::string summary = fmt::format(
      "longest round {:.1f} ms since gpurotad started, {:.1f} ms in the last minute",
      Milliseconds(rounds.since_start).count(), Milliseconds(rounds.last_minute).count());
  if (rounds.last_minute < kLongRound) return ok("event loop", summary);
  return warning("event loop", summary,
                 "every answer can take that long: check whether the disk with gpurotad's state is "
                 "slow or the machine is out of memory; if neither, please report it");
}

// The user who uses most of each budget; a warning for budgets that are nearly used up.
Check check_budgets(const std::vector<Examination::Use>& budgets) {
  std::vector<std::string> all, short_of;
  for (const Examination::Use& use : budgets) {
    const bool nearly = use.used >= use.most - use.most / kNearlyPart;
    const auto amount = [&](std::uint64_t n) {
      return use.bytes ? to_string(Bytes(n)) : std::to_string(n);
    };
    (nearly ? short_of : all)
        .push_back(fmt::format("{}: {} uses {} of {}", use.what, display_text(use.user, 60),
                               amount(use.used), amount(use.most)));
  }
  if (!short_of.empty()) {
    return warning("budgets", fmt::format("{}", fmt::join(short_of, "; ")),
                   "ask that user what runs there, or allow more: BUDGETS in gpurota.toml(5)");
  }
  return ok("budgets",
            all.empty() ? std::string("nothing is used") : fmt::format("{}", fmt::join(all, "; ")));
}

// The time that a switch of turns takes with none of the moving memory pinned, divided by the time
// with all of it pinned. In between, the time grows linearly with the part that is not pinned
// (bench/RESULTS.md, "How fast do turns switch?": 1.48 s with 1 % pinned, 0.83 s with 69 %, 0.54 s
// with all).
constexpr double kUnpinnedFactor = 2.7;

Check check_pins(const HostPins& pins, int leases) {
  const std::string summary =
      fmt::format("{} of {} pinned that {} lease{} may have to move", to_string(pins.pinned),
                  to_string(pins.may_move), leases, leases == 1 ? "" : "s");
  if (pins.may_pin >= pins.may_move) return ok("turns", summary);
  const auto share =
      static_cast<double>(pins.may_pin.count()) / static_cast<double>(pins.may_move.count());
  return warning(
      "turns",
      fmt::format("{}; a switch takes about {:.1f} times as long as with all of it pinned", summary,
                  1 + (1 - share) * (kUnpinnedFactor - 1)),
      fmt::format("no more than {} may be pinned: raise turns.pinned in gpurota.toml if the "
                  "machine can spare more, or the users' limits on pinned memory",
                  to_string(pins.may_pin)));
}

// Warns of protections that any user can undo.
std::vector<Check> check_access(const AccessReport& access) {
  const std::string name = "strict access";
  std::vector<Check> checks;
  for (const std::string& problem : access.problems) {
    checks.push_back(error(name, problem,
                           "gpurotad must run as root, and /dev must take access lists (ACLs): "
                           "docs/operate/strict-access.md"));
  }
  if (access.helper_mode && *access.helper_mode != access::kHarmlessMode) {
    checks.push_back(
        warning(name,
                fmt::format("any user can have nvidia-modprobe set the device files to mode {:04o}",
                            *access.helper_mode),
                "write 'options nvidia NVreg_DeviceFileMode=0660' to /etc/modprobe.d/gpurota.conf, "
                "and load "
                "the driver again or reboot"));
  }
  if (access.undone > 0) {
    checks.push_back(
        warning(name,
                fmt::format("somebody else changed device files {} time{}; the last: {}",
                            access.undone, access.undone == 1 ? "" : "s", access.last_undone),
                "gpurotad sets them right within a moment; look for udev rules and programs that "
                "set them"));
  }
  if (!access.unfenced.empty()) {
    checks.push_back(
        warning(name, "a lease's programs can open all GPUs of their user: " + access.unfenced,
                "give gpurotad what it needs for that, or live with it: "
                "docs/operate/strict-access.md, 'Per lease'"));
  }
  if (!access.openers.empty()) {
    std::vector<std::string> pids;
    for (const sys::DeviceOpener& opener : access.openers) {
      if (opener.pid != 0) pids.push_back(std::to_string(opener.pid));
    }
    const std::size_t count = access.openers.size();
    checks.push_back(warning(
        name,
        fmt::format("{} process{} without a lease had device files open before{}{}", count,
                    count == 1 ? "" : "es", pids.empty() ? "" : ": ", fmt::join(pids, ", ")),
        "what is open stays open: end them, or name their users in access.users"));
  }
  if (checks.empty() && access.strict) {
    checks.push_back(ok(name, fmt::format("{} device file{} open to holders of leases only",
                                          access.files, access.files == 1 ? " is" : "s are")));
  }
  return checks;
}

// The driver's own limits, where the site has them enforced.
std::vector<Check> check_driver_limits(const DriverLimitsReport& limits) {
  const std::string name = "driver limits";
  std::vector<Check> checks;
  for (const std::string& problem : limits.problems) {
    checks.push_back(warning(name, problem,
                             limits.required
                                 ? "slices are refused there: set enforcement = \"auto\" in "
                                   "gpurota.toml, or see docs/design/driver-limits.md"
                                 : "libgpurota alone enforces limits there; see "
                                   "docs/design/driver-limits.md"));
  }
  for (const std::string& other : limits.others) {
    checks.push_back(warning(name, "somebody else has set a limit: " + other,
                             "gpurota leaves that limit as it is, and the smaller limit counts: "
                             "remove it with nvidia-smi memory-limits if it is not wanted; "
                             "otherwise 'gpurota update LEASE --memory' gives others the memory "
                             "that it leaves unused"));
  }
  if (!limits.daemon_in.empty()) {
    checks.push_back(warning(
        name, "gpurotad runs in a control group that has a limit: " + limits.daemon_in,
        "what it reads of the GPUs' memory is what that group may have: run it outside the group"));
  }
  if (checks.empty()) {
    checks.push_back(
        ok(name, fmt::format("experimental: the driver limits {} of {} slice{} beside "
                             "libgpurota",
                             limits.limited, limits.slices, limits.slices == 1 ? "" : "s")));
  }
  return checks;
}

// One check for each warning, whose text names the setting.
std::vector<Check> check_config(const Examination& machine) {
  if (machine.config_warnings.empty()) return {ok("configuration", machine.config)};
  std::vector<Check> checks;
  for (const std::string& problem : machine.config_warnings) {
    checks.push_back(warning("configuration", problem,
                             "change the file and run 'gpurota reload', or restart gpurotad where "
                             "that is said"));
  }
  return checks;
}

// With keep_free_gpus = "0s" the queue does not promise to use idle GPUs (docs/design/queue.md).
Check kept_for_ever() {
  return warning(
      "queue",
      "keep_free_gpus is 0s: idle GPUs are kept for ever for requests that wait for more "
      "of them, while others wait",
      "set keep_free_gpus = \"1h\" (the default) in gpurota.toml, and run 'gpurota "
      "reload'");
}

Check check_history(const Examination& machine) {
  if (machine.history_error) {
    return warning("history", "figures over time are not stored: " + machine.history_error->message,
                   "leases are not affected; what is in memory is stored when that is put right");
  }
  if (!machine.history_trouble.empty()) {
    return warning("history", machine.history_trouble,
                   "leases are not affected. Look for a failing disk (dmesg), remove the old file, "
                   "and restart gpurotad");
  }
  return ok("history", "figures over time are recorded");
}

// The first folder on the path of `file` that others may not search, or `file` if others may not
// read it; empty: none.
std::string closed_to_others(const std::string& file) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = file.find('/', end + 1);
    std::string part = file.substr(0, end);
    const mode_t needed = end == std::string::npos ? S_IROTH : S_IXOTH;
    struct stat info {};
    if (::stat(part.c_str(), &info) == 0 && (info.st_mode & needed) == 0) return part;
  }
  return {};
}

}  // namespace

std::vector<Check> examine(const Examination& machine) {
  std::vector<Check> checks = {check_driver(machine)};
  for (const Examination::Gpu& gpu : machine.gpus) {
    for (Check& check : check_gpu(gpu)) checks.push_back(std::move(check));
  }
  if (machine.driver) {
    for (const std::string& problem : machine.driver->problems) {
      checks.push_back(
          error("gpu", problem,
                "look at dmesg and nvidia-smi; the GPU is left out until gpurotad is restarted"));
    }
  }
  if (machine.gpus.empty() && !machine.driver_error) {
    checks.push_back(error("gpu", "the driver sees no GPU", "look at lspci and dmesg"));
  }
  for (Check& check : check_unaccounted(machine)) checks.push_back(std::move(check));
  checks.push_back(check_processes(machine));
  checks.push_back(check_cgroup(machine));
  checks.push_back(check_library(machine));
  checks.push_back(machine.store_error
                       ? error("store", machine.store_error->message,
                               "no lease can be made until gpurotad can write there")
                       : ok("store", "leases can be stored"));
  checks.push_back(check_history(machine));
  if (machine.rounds) checks.push_back(check_loop(*machine.rounds));
  checks.push_back(check_budgets(machine.budgets));
  for (Check& check : check_config(machine)) checks.push_back(std::move(check));
  if (machine.keeps_free_gpus_for_ever) checks.push_back(kept_for_ever());
  checks.push_back(machine.root
                       ? ok("daemon", machine.group.empty()
                                          ? std::string("runs as root, for everybody")
                                          : "runs as root, for members of the group " +
                                                display_text(machine.group, 60))
                       : warning("daemon", "runs unprivileged: for its own user only",
                                 "for all users, start it as root: systemctl start gpurotad"));
  if (machine.moving_leases > 0) {
    checks.push_back(check_pins(machine.host_pins, machine.moving_leases));
  }
  if (!machine.automatic.empty()) checks.push_back(ok("automatic leases", machine.automatic));
  if (!machine.cdi_trouble.empty()) {
    checks.push_back(warning("containers", "engines do not find all leases: " + machine.cdi_trouble,
                             "see containers.cdi in gpurota.toml(5)"));
  } else if (!machine.cdi.empty()) {
    checks.push_back(ok("containers", machine.cdi));
  }
  if (machine.access) {
    for (Check& check : check_access(*machine.access)) checks.push_back(std::move(check));
  }
  if (machine.driver_limits) {
    for (Check& check : check_driver_limits(*machine.driver_limits)) {
      checks.push_back(std::move(check));
    }
  }
  checks.push_back(
      ok("host memory", fmt::format("{} of {} available", to_string(machine.host_memory_available),
                                    to_string(machine.host_memory))));
  checks.push_back(ok("libc", machine.libc));
  return checks;
}

void read_machine(Examination& machine, ports::Processes& processes) {
  machine.root = ::geteuid() == 0;
  machine.cgroup = processes.cgroups().of(::getpid());
  machine.cgroup_writable = !machine.cgroup.empty() && ::access(machine.cgroup.c_str(), W_OK) == 0;
  if (!machine.preload.empty()) {
    machine.preload_problem = preload_problem(machine.preload);
    if (machine.root) machine.preload_closed = closed_to_others(machine.preload);
  }
  const auto init = processes.read_info(1);
  machine.hidden_processes = !init;
  if (const auto memory = sys::read_machine_memory()) {
    machine.host_memory = memory->total;
    machine.host_memory_available = memory->available;
  }
  machine.libc = std::string("glibc ") + ::gnu_get_libc_version();
}

}  // namespace gpurota::daemon
