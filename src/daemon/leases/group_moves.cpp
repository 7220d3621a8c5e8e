#include "daemon/leases/group_moves.h"

#include "base/log.h"
#include "daemon/leases/lease_rows.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {

LeaseProcesses* GroupMoves::find(LeaseId lease, pid_t pid) {
  LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry) return nullptr;
  if (entry->main && entry->main->pid() == pid) return &entry->members;
  const auto command = entry->commands.find(pid);
  return command == entry->commands.end() ? nullptr : &command->second.members;
}

bool GroupMoves::is_under_way(LeaseId lease) const {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry) return false;
  return entry->members.moves() ||
         std::any_of(entry->commands.begin(), entry->commands.end(),
                     [](const auto& each) { return each.second.members.moves(); });
}

// The last daemon may have ended after it stored the start and before it moved the process, so the
// kernel is asked where the process is.
void GroupMoves::begin(LeaseId lease, pid_t pid) {
  LeaseProcesses* const members = find(lease, pid);
  if (!members || !members->own_cgroup() || members->moves()) return;
  ports::ControlGroups& groups = parts_.processes.cgroups();
  if (ports::is_in_cgroup(groups.of(pid), members->cgroup())) return;
  members->set_moves(true);
  groups.enter(members->cgroup(), pid,
               [this, lease, pid](const Result<void>& moved) { on_moved(lease, pid, moved); });
}

void GroupMoves::on_moved(LeaseId lease, pid_t pid, const Result<void>& moved) {
  LeaseProcesses* const members = find(lease, pid);
  if (!members || !members->moves()) return;
  members->set_moves(false);
  if (!moved) {
    log::debug("no cgroup for a lease, following its processes by pidfd",
               {{"lease", to_string(lease)}, {"error", moved.error().message}});
    members->leave_cgroup();
    ++parts_.tables.membership_changes;
    const LeaseEntry& entry = *parts_.tables.find(lease);
    const auto saved = save_lease(entry, parts_.processes.boot_id(), parts_.store, parts_.tables);
    if (!saved) {
      log::error("cannot store that a lease has no cgroup, the next start will see it",
                 {{"lease", to_string(lease)}, {"error", saved.error().message}});
    }
  }
  parts_.on_moved();
}

}  // namespace gpurota::daemon
