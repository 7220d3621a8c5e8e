#include "daemon/leases/own_shell.h"

#include "lease/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gpurota::daemon {
namespace {

// A process that the kernel says is in the lease ends with the lease, whatever its environment
// says.
bool has_process(const LeaseEntry& entry, const ports::ProcessId& process,
                 const std::string& cgroup) {
  if (entry.members.contains(process) || ports::is_in_cgroup(cgroup, entry.members.cgroup())) {
    return true;
  }
  return std::any_of(entry.commands.begin(), entry.commands.end(), [&](const auto& command) {
    const LeaseProcesses& members = command.second.members;
    return members.contains(process) || ports::is_in_cgroup(cgroup, members.cgroup());
  });
}

std::vector<LeaseId> leases_around(const OwnShell::Parts& parts, const AcquireRequest& request,
                                   const OwnShell& shell) {
  const std::string cgroup = parts.processes.cgroups().of(request.process.pid);
  std::vector<LeaseId> around;
  for (const auto& [id, entry] : parts.tables.leases) {
    if (entry.lease.uid != request.uid || entry.cause) continue;
    const bool said = shell.said == id && request.kind != LeaseKind::kReservation;
    if (said || has_process(entry, request.process, cgroup)) around.push_back(id);
  }
  return around;
}

// "your L5, in whose shell you are, has GPU 0".
std::string has_text(const OwnShell::Parts& parts, const std::vector<LeaseId>& around) {
  std::vector<std::string> texts;
  for (const LeaseId id : around) {
    std::vector<std::string> gpus;
    for (const LeaseGpu& share : parts.tables.leases.at(id).lease.gpus) {
      gpus.push_back(parts.gpus.name_of(share.uuid));
    }
    texts.push_back(fmt::format("your {}, in whose shell you are, has GPU {}", to_string(id),
                                fmt::join(gpus, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Whether the request would start if there were no other leases and no other programs.
bool would_start(const OwnShell::Parts& parts, const AcquireRequest& request,
                 const std::vector<LeaseId>& leases) {
  auto occupants = parts.rooms.occupants();
  std::erase_if(occupants, [&](const lease::Occupant& each) {
    return std::find(leases.begin(), leases.end(), each.id) == leases.end();
  });
  return lease::starts_beside(request.placement, parts.rooms.list_with(leases), occupants);
}

}  // namespace

Result<void> check_own_shell(const OwnShell::Parts& parts, const AcquireRequest& request,
                             const OwnShell& shell) {
  const std::vector<LeaseId> around = leases_around(parts, request, shell);
  if (around.empty()) return {};
  if (would_start(parts, request, around)) return {};
  // A request that could not start even without the leases around it is refused, or waits, for its
  // own reason.
  if (!would_start(parts, request, {})) return {};
  const bool command = request.kind != LeaseKind::kReservation;
  return fail(
      Code::kInvalid,
      has_text(parts, around) + (command && !shell.options.empty()
                                     ? fmt::format(": leave out {} to use it", shell.options)
                                     : std::string(": this could only start when that has ended")));
}

}  // namespace gpurota::daemon
