// Finds problems that would stop gpurota on this machine, as the daemon sees it, with a remedy for
// each.
#pragma once

#include "base/result.h"
#include "core/gpu.h"
#include "daemon/tenants/swap_tenant.h"
#include "daemon/watch/driver_limits.h"
#include "daemon/watch/strict_access.h"
#include "ports/gpu_probe.h"
#include "ports/processes.h"
#include "proto/types.h"
#include "sys/round_times.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

// Everything that the checks need, gathered in advance, so that the checks are pure.
struct Examination {
  std::optional<ports::DriverInfo> driver;
  std::optional<Error> driver_error;
  std::optional<Error> store_error;
  std::optional<Error> history_error{};  // why figures over time are not stored
  std::string history_trouble{};         // what happened to an earlier file that was unusable
  struct Gpu {
    GpuInfo info;
    std::string name;  // "0", "0:1"
    GpuSample sample;
    Bytes reserve{};  // of unified memory: the part that leases cannot have
    std::vector<ports::GpuProbe::Setting> settings;
  };
  std::vector<Gpu> gpus;
  // By the name of the GPU: memory in use that belongs to no visible process.
  std::map<std::string, Bytes> unaccounted{};
  bool root = false;
  std::string cgroup;  // the daemon's own cgroup v2; empty: there is none
  bool cgroup_writable = false;
  bool hidden_processes = false;  // /proc is mounted with hidepid
  Bytes host_memory;
  Bytes host_memory_available;
  std::string libc;             // "glibc 2.36"
  std::string preload;          // path of libgpurota.so, empty if missing
  std::string preload_problem;  // why programs cannot load it; empty: they can
  std::string preload_closed;   // the file or folder that other users may not use; empty: none
  std::string group;            // the group whose members may connect; empty: everybody
  std::string config;           // "/etc/gpurota/gpurota.toml and 2 drop-ins"
  std::vector<std::string> config_warnings;  // a line each
  // The automatic leases that programs get; empty: none.
  std::string automatic;
  bool keeps_free_gpus_for_ever = false;  // keep_free_gpus = "0s"
  std::string cdi;                        // lists the existing CDI files, in words; empty: none
  std::string cdi_trouble;                // why CDI files are missing; empty: none are missing
  // Driver functions that libgpurota should hook but does not: how many times programs looked them
  // up, and the names of these functions.
  std::uint64_t unhooked = 0;
  std::set<std::string> unhooked_names;
  std::set<pid_t> counted{};  // processes in `unhooked`, once each: a process may use several GPUs
  std::optional<sys::LongestRounds> rounds;  // of the daemon's loop
  struct Use {
    std::string what;  // "descriptors"
    std::string user;  // who uses most of it
    std::uint64_t used = 0;
    std::uint64_t most = 0;
    bool bytes = false;
  };
  std::vector<Use> budgets;
  std::optional<AccessReport>
      access;  // strict access; the pid of an opener is 0 if others may not see it
  std::optional<DriverLimitsReport> driver_limits{};  // empty: they are not used
  HostPins host_pins;         // of the leases whose memory may have to move before long
  int moving_leases = 0;      // their number
  int times_not_limited = 0;  // programs with libgpurota that it did not limit, so far
};

std::vector<proto::Check> examine(const Examination& machine);

// Reads the parts of the machine that are neither GPU nor lease.
void read_machine(Examination& machine, ports::Processes& processes);

}  // namespace gpurota::daemon
