#include "daemon/leases/lease_commands.h"

#include "abi/env.h"
#include "base/log.h"
#include "daemon/leases/lease_kill.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/lease_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gpurota::daemon {
namespace {

constexpr const char* kTimeOver = "its time limit is over";
// The pause between two checks of whether the processes of an ending command are gone.
constexpr Duration kCommandPace = std::chrono::milliseconds(10);

}  // namespace

LeaseCommand* LeaseCommands::find(LeaseId lease, pid_t pid) {
  LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry) return nullptr;
  const auto it = entry->commands.find(pid);
  return it == entry->commands.end() ? nullptr : &it->second;
}

Result<std::optional<std::string>> LeaseCommands::start(LeaseEntry& entry,
                                                        const CommandStart& start) {
  const LeaseId id = entry.lease.id;
  if (entry.lease.state == LeaseState::kExpired) {
    return fail(Code::kGone,
                fmt::format("the time of {0} is over: 'gpurota update {0} --for 1h' gives "
                            "it more if nobody waits",
                            to_string(id)));
  }
  if (entry.commands.size() >= kMaxCommandsPerLease) {
    return fail(Code::kLimit, fmt::format("{} commands run under {} already", kMaxCommandsPerLease,
                                          to_string(id)));
  }
  GPUROTA_ASSIGN_OR_RETURN(const ports::ProcessInfo child, parts_.processes.read_info(start.pid));
  LeaseCommand command(parts_.processes);
  // The caller still lives after the child was read. So if the child's parent has the caller's pid,
  // the parent is the caller.
  GPUROTA_ASSIGN_OR_RETURN(command.holder, track(parts_.processes, start.caller, nullptr));
  if (child.parent != start.caller.pid) {
    return fail(Code::kDenied, fmt::format("process {} is not a child of the caller", start.pid));
  }
  if (child.uid != entry.lease.uid) {
    return fail(Code::kDenied,
                fmt::format("{} is another user's: " GPUROTA_LEAVE_LEASE, to_string(id)));
  }
  const auto known = entry.commands.find(start.pid);
  if (known != entry.commands.end() && known->second.main.id == child.id()) {
    parts_.moves.begin(id, start.pid);
    return known->second.members.own_cgroup();
  }
  GPUROTA_ASSIGN_OR_RETURN(command.main, track(parts_.processes, child.id(), nullptr));
  auto cgroup = parts_.processes.cgroups().make_below(
      start.pid, fmt::format("{}{}-{}", ports::kCgroupPrefix, to_string(id), start.pid));
  const auto reaper = start.subreaper ? std::optional(start.caller) : std::nullopt;
  command.members.set_root(child.id(), cgroup.value_or(""), reaper);
  ++parts_.tables.membership_changes;
  if (start.lasts) command.ends = parts_.wall_clock() + *start.lasts;
  const auto [added, fresh] = entry.commands.emplace(start.pid, std::move(command));
  if (!fresh) {
    return fail(
        Code::kUnavailable,
        fmt::format(
            "processes that process {} of {} left behind are still being stopped: try again",
            start.pid, to_string(id)));
  }
  const auto unused_since = std::exchange(entry.unused_since, std::nullopt);
  if (auto saved = save_lease(entry, parts_.processes.boot_id(), parts_.store, parts_.tables);
      !saved) {
    entry.commands.erase(added);
    entry.unused_since = unused_since;
    return tl::unexpected<Error>(std::move(saved).error());
  }
  follow(id, added->second);
  parts_.hooks.publish(entry, false);
  parts_.moves.begin(id, start.pid);
  return added->second.members.own_cgroup();
}

void LeaseCommands::follow(LeaseId id, LeaseCommand& command) {
  const pid_t pid = command.main.pid();
  const auto on_death = [&](TrackedProcess& process, const char* why) {
    auto death =
        parts_.processes.on_death(*process.handle, [this, id, pid, why] { stop(id, pid, why); });
    if (death) process.death = std::move(*death);
  };
  on_death(command.main, "it has ended");
  on_death(command.holder, "the process that held it is gone");
  if (!command.ends) return;
  const auto left = std::max<Duration>(*command.ends - parts_.wall_clock(), Duration(0));
  command.expiry = parts_.loop.add_timer(parts_.loop.now() + left, ports::Urgency::kSafety,
                                         [this, id, pid, holder = command.holder.id] {
                                           parts_.hooks.on_time_over(holder, kTimeOver);
                                           stop(id, pid, kTimeOver);
                                         });
}

void LeaseCommands::stop(LeaseId id, pid_t pid, const std::string& why) {
  LeaseCommand* const command = find(id, pid);
  if (!command || command->ending) return;
  log::info("command ends", {{"lease", to_string(id)},
                             {"uid", parts_.tables.find(id)->lease.uid},
                             {"pid", pid},
                             {"reason", why}});
  command->ending = true;
  command->kill_at = parts_.loop.now() + parts_.config.grace;
  command->members.ask_to_end();
  // step() runs later, because the caller may be the callback of one of the command's own watches.
  command->timer = parts_.loop.add_timer(parts_.loop.now() + kCommandPace, ports::Urgency::kSafety,
                                         [this, id, pid] { step(id, pid); });
}

void LeaseCommands::step(LeaseId id, pid_t pid) {
  LeaseCommand* const command = find(id, pid);
  if (!command) return;
  if (!command->members.all_ended()) {
    const Duration late = parts_.loop.now() - command->kill_at;
    if (late >= Duration(0)) kill_leftovers(command->members, &command->main, late);
    command->timer =
        parts_.loop.add_timer(parts_.loop.now() + kCommandPace, ports::Urgency::kSafety,
                              [this, id, pid] { step(id, pid); });
    return;
  }
  command->members.clean_up();
  const auto running_timer = std::move(command->timer);  // this very callback's
  LeaseEntry& entry = *parts_.tables.find(id);
  entry.commands.erase(pid);
  if (auto saved = save_lease(entry, parts_.processes.boot_id(), parts_.store, parts_.tables);
      !saved) {
    log::error("cannot store that a command has ended, the next start will see it",
               {{"lease", to_string(id)}, {"error", saved.error().message}});
  }
  parts_.hooks.publish(entry, false);
}

Result<void> LeaseCommands::restore(LeaseEntry& entry, const ports::StoredLease& stored) {
  const LeaseId id = entry.lease.id;
  for (const ports::StoredCommand& row : stored.commands) {
    LeaseCommand command(parts_.processes);
    GPUROTA_ASSIGN_OR_RETURN(auto main, unless_gone(track(parts_.processes, row.main, nullptr)));
    GPUROTA_ASSIGN_OR_RETURN(auto holder,
                             unless_gone(track(parts_.processes, row.holder, nullptr)));
    if (!main && row.cgroup.empty()) continue;  // its processes cannot be told from others
    const bool reaps = holder && row.cgroup.empty();
    command.members.set_root(main ? std::optional(row.main) : std::nullopt, row.cgroup,
                             reaps ? std::optional(row.holder) : std::nullopt);
    command.ends = row.ends;
    const bool whole = main && holder;
    if (main) command.main = std::move(*main);
    if (holder) command.holder = std::move(*holder);
    const auto [added, fresh] = entry.commands.emplace(row.main.pid, std::move(command));
    if (whole) {
      follow(id, added->second);
    } else {
      // Later, when the lease is in the table.
      parts_.loop.post(
          [this, id, pid = row.main.pid] { stop(id, pid, "it ended while the daemon was away"); });
    }
  }
  return {};
}

}  // namespace gpurota::daemon
