#include "daemon/tenants/park_checks.h"

#include "sys/group_memory.h"
#include "sys/machine_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace gpurota::daemon {
namespace {

// Only with these was parking measured.
constexpr const char* kMeasuredDriver = "580";

bool is_ready_to_hear(const Tenant& tenant) {
  return !tenant.dead && tenant.session != nullptr && tenant.event;
}

Result<void> check_fits(Bytes need, std::optional<Bytes> room, const std::string& whose) {
  if (!room || need + ParkChecks::kMargin <= *room) return {};
  return fail(
      Code::kLimit,
      fmt::format("parking needs {} of host memory and {} beside it, and {} has {} left",
                  to_string(need), to_string(ParkChecks::kMargin), whose, to_string(*room)));
}

}  // namespace

Result<void> ParkChecks::check_kind(const LeaseEntry& entry) const {
  const Lease& lease = entry.lease;
  const std::string id = to_string(lease.id);
  if (lease.exclusive()) {
    return fail(Code::kInvalid, fmt::format("{} has whole GPUs, and only leases with --memory or "
                                            "--swap can be parked so far",
                                            id));
  }
  if (lease.kind == LeaseKind::kFiller) {
    return fail(Code::kInvalid, fmt::format("{} is of a filler: pause the filler instead", id));
  }
  if (!lease.oversize().is_zero()) {
    return fail(Code::kInvalid,
                fmt::format("{} has memory in host memory for good (--oversize), which cannot be "
                            "parked so far",
                            id));
  }
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    if (!gpu) return fail(Code::kUnavailable, fmt::format("a GPU of {} is lost", id));
    if (gpu->info.parent.value.empty()) continue;
    return fail(Code::kInvalid,
                fmt::format("{} has a MIG instance, which cannot be parked so far", id));
  }
  return {};
}

Result<void> ParkChecks::check_driver() const {
  if (!parts_.driver.info) return fail(Code::kUnavailable, "the driver does not answer");
  const std::string& version = parts_.driver.info->driver_version;
  const std::string major = version.substr(0, version.find('.'));
  const auto& listed = parts_.config.park.drivers;
  if (major == kMeasuredDriver || std::find(listed.begin(), listed.end(), major) != listed.end()) {
    return {};
  }
  return fail(Code::kUnavailable,
              fmt::format("parking was not measured with driver {}: run tests/gpu/park.sh on this "
                          "machine, then list \"{}\" in [park] drivers of gpurota.toml",
                          major, major));
}

std::vector<ports::ProcessId> ParkChecks::processes_of(LeaseId lease) const {
  std::vector<ports::ProcessId> processes;
  for (const auto& [id, tenant] : parts_.tenants.of_lease(lease)) {
    if (!tenant->dead) processes.push_back(tenant->process.id);
  }
  return processes;
}

Result<void> ParkChecks::check_processes(LeaseId lease) const {
  std::vector<pid_t> known;
  for (const auto& [id, tenant] : parts_.tenants.of_lease(lease)) {
    if (tenant->dead) continue;
    const pid_t pid = tenant->process.pid();
    known.push_back(pid);
    if (!is_ready_to_hear(*tenant)) {
      return fail(
          Code::kUnavailable,
          fmt::format("process {} is not connected to gpurotad: try again in some seconds", pid));
    }
    if (!tenant->has_parking) {
      return fail(Code::kUnavailable,
                  fmt::format("process {} has loaded an older libgpurota.so, which cannot be "
                              "parked: start the program again",
                              pid));
    }
    if (parts_.processes.is_stopped(pid)) {
      return fail(Code::kUnavailable,
                  fmt::format("process {} is stopped or frozen: let it continue first", pid));
    }
  }
  if (known.empty()) {
    return fail(
        Code::kUnavailable,
        fmt::format("no program of {} uses its GPU: there is nothing to park", to_string(lease)));
  }
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    for (const GpuProcess& process : gpu.sample.processes) {
      if (std::find(known.begin(), known.end(), process.pid) != known.end()) continue;
      const Attribution::Owner& owner = parts_.attribution.owner_of(process.pid);
      if (owner.lease != lease || owner.gone) continue;
      return fail(Code::kUnavailable,
                  fmt::format("process {} uses the GPU without libgpurota.so: it could crash while "
                              "it is parked",
                              process.pid));
    }
  }
  return {};
}

Bytes ParkChecks::used_by(const ports::ProcessId& process) const {
  Bytes used;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    for (const GpuProcess& each : gpu.sample.processes) {
      if (each.pid == process.pid) used += each.used.value_or(Bytes());
    }
  }
  return used;
}

Result<void> ParkChecks::check_host_memory(LeaseId lease, Bytes in_motion) const {
  Bytes sum;
  std::map<std::string, Bytes> of_group;
  for (const ports::ProcessId& process : processes_of(lease)) {
    const Bytes used = used_by(process);
    sum += used;
    const std::string group = parts_.processes.cgroups().of(process.pid);
    if (!group.empty()) of_group[group] += used;
  }
  for (const auto& [group, used] : of_group) {
    GPUROTA_TRY(check_fits(used, sys::read_group_room(group), "the control group of its programs"));
  }
  const auto machine = sys::read_machine_memory();
  return check_fits(sum + in_motion, machine ? std::optional(machine->available) : std::nullopt,
                    "the machine");
}

Result<void> ParkChecks::check(const LeaseEntry& entry, Bytes in_motion) const {
  GPUROTA_TRY(check_kind(entry));
  GPUROTA_TRY(check_driver());
  GPUROTA_TRY(check_processes(entry.lease.id));
  return check_host_memory(entry.lease.id, in_motion);
}

}  // namespace gpurota::daemon
