#include "daemon/leases/lease_manager.h"

#include "base/log.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Between two looks at whether the processes of an ending lease are gone. Death itself comes by
// pidfd; this only paces the rest.
constexpr Duration kEndingPace = std::chrono::milliseconds(10);
// How long an ending lease waits for NVML to stop counting its memory before it is given up on: a
// driver took 4.7 s when a forked child lived on (measured), so this is several times that.
constexpr Duration kMemoryPatience = std::chrono::seconds(60);

// What a driver keeps for itself, and how long more than that is taken for memory on its way back.
constexpr Bytes kUnlistedNoise = gib(1);
constexpr Duration kUnlistedPatience = std::chrono::seconds(2);

const char* name_of(EndCause cause) {
  switch (cause) {
    case EndCause::kFinished:
      return "finished";
    case EndCause::kReleased:
      return "released";
    case EndCause::kLost:
      return "lost";
    case EndCause::kExpired:
      return "expired";
  }
  return "";
}

std::optional<ports::ProcessId> stored(const std::optional<TrackedProcess>& process) {
  if (!process) return std::nullopt;
  return process->id;
}

}  // namespace

const LeaseEntry* LeaseManager::find(LeaseId id) const {
  const auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : &it->second;
}

Result<void> LeaseManager::save(const LeaseEntry& entry) {
  auto saved = parts_.store.save_lease(row_of(entry));
  store_error_ = saved ? std::nullopt : std::optional(saved.error());
  return saved;
}

ports::StoredLease LeaseManager::row_of(const LeaseEntry& entry) const {
  ports::StoredLease row;
  row.id = entry.lease.id;
  row.uid = entry.lease.uid;
  row.kind = to_string(entry.lease.kind);
  row.ends = entry.lease.ends;
  row.as_name = entry.lease.as_name;
  row.ticket = entry.ticket;
  for (const auto& [pid, command] : entry.commands) row.commands.push_back(command.stored());
  row.token = entry.token;
  row.since = entry.lease.since;
  row.note = entry.lease.note;
  row.command = entry.lease.command;
  for (const LeaseGpu& gpu : entry.lease.gpus) {
    row.gpus.push_back(
        {gpu.uuid, gpu.limit, gpu.soft_limit, gpu.swap, gpu.oversize, gpu.highest_limit});
  }
  row.priority = entry.lease.priority;
  row.quantum = entry.lease.quantum;
  row.holder = stored(entry.holder);
  row.main = stored(entry.main);
  row.cgroup = entry.members.cgroup();
  row.subreaper = entry.subreaper;
  row.boot_id = parts_.processes.boot_id();
  row.ending = entry.cause.has_value();
  return row;
}

std::function<void()> LeaseManager::on_main_death(LeaseId id) {
  return [this, id] { end(id, EndCause::kFinished, "its command has ended"); };
}

std::function<void()> LeaseManager::on_holder_death(LeaseId id) {
  return [this, id] { end(id, EndCause::kLost, "the process that held it is gone"); };
}

void LeaseManager::on_process_death(LeaseId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second.automatic || it->second.cause) return;
  if (it->second.members.all_ended()) {
    end(id, EndCause::kFinished, "its processes have ended");
  }
}

tl::expected<const LeaseEntry*, lease::Refusal> LeaseManager::acquire(
    const AcquireRequest& request) {
  const auto refuse = [](Error error) {
    return tl::unexpected<lease::Refusal>(lease::Refusal{std::move(error), 0, 0});
  };
  if (auto within = check_user_limit(request, false); !within) return refuse(within.error());
  auto gpus = parts_.choose ? parts_.choose(request) : lease::place(request.placement, rooms());
  if (!gpus) return tl::unexpected(std::move(gpus).error());
  return make(request, std::move(*gpus), std::nullopt);
}

tl::expected<const LeaseEntry*, lease::Refusal> LeaseManager::make(
    const AcquireRequest& request, std::vector<LeaseGpu> gpus, std::optional<RequestId> waited) {
  const auto refuse = [](Error error) {
    return tl::unexpected<lease::Refusal>(lease::Refusal{std::move(error), 0, 0});
  };
  // Who waited was counted then.
  if (!waited) {
    if (auto counted = count_new(request); !counted) return refuse(counted.error());
  }
  auto id = parts_.store.next_lease_id();
  if (!id) {
    store_error_ = id.error();
    return refuse(std::move(id).error().context("cannot make a lease"));
  }

  LeaseEntry entry(parts_.processes);
  entry.lease.id = *id;
  entry.lease.uid = request.uid;
  entry.lease.since = parts_.wall_clock();
  entry.lease.kind = request.kind;
  if (request.lasts) entry.lease.ends = entry.lease.since + *request.lasts;
  entry.lease.gpus = std::move(gpus);
  entry.lease.priority = request.priority;
  entry.lease.quantum = request.quantum;
  entry.lease.as_name = request.as_name;
  entry.ticket = request.ticket;
  entry.lease.note = request.note;
  entry.lease.command = request.command;
  entry.token = parts_.make_token();
  // A reservation is held by nobody but the clock.
  if (request.kind != LeaseKind::kReservation) {
    auto holder = track(
        parts_.processes, request.process,
        request.automatic ? [this, id = *id] { on_process_death(id); } : on_holder_death(*id));
    if (!holder) return refuse(std::move(holder).error().context("cannot follow the caller"));
    entry.holder = std::move(*holder);
  }
  if (request.automatic) {
    auto main = track(parts_.processes, request.process, nullptr);
    if (!main) return refuse(std::move(main).error().context("cannot follow the caller"));
    entry.main = std::move(*main);
    entry.automatic = true;
    entry.members.add(request.process);
    ++membership_changes_;
  }
  if (entry.lease.swap() && parts_.admit_swap) {
    if (auto admitted = parts_.admit_swap(entry.lease); !admitted) return refuse(admitted.error());
  }
  auto saved = waited ? parts_.store.grant_request(*waited, row_of(entry)) : save(entry);
  if (!saved) {
    if (entry.lease.swap()) parts_.on_change(entry, true);  // out of the turns again
    return refuse(std::move(saved).error().context("cannot store the lease"));
  }
  parts_.grants.open(entry.lease);
  const auto [it, added] = entries_.emplace(*id, std::move(entry));
  arm_expiry(it->second);
  log::info("lease made", {{"lease", to_string(*id)}, {"uid", request.uid}});
  parts_.on_change(it->second, false);
  return &it->second;
}

Result<std::optional<std::string>> LeaseManager::start(LeaseId id, pid_t pid, bool subreaper) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.cause) {
    return fail(Code::kGone, to_string(id) + " has ended");
  }
  LeaseEntry& entry = it->second;
  // Who did not hear the answer of the last daemon asks the next one.
  if (entry.main && entry.main->pid() == pid) return entry.members.own_cgroup();
  if (entry.main) return fail(Code::kInvalid, to_string(id) + " runs a command already");
  if (!entry.holder) return fail(Code::kInvalid, to_string(id) + " is a reservation");
  GPUROTA_ASSIGN_OR_RETURN(const ports::ProcessInfo child, parts_.processes.read_info(pid));
  // Of a holder that lives the number is its own, so it is that of the child's parent.
  const bool is_child = child.parent == entry.holder->pid() && entry.holder->alive();
  if (!is_child || child.uid != entry.lease.uid) {
    return fail(Code::kDenied, fmt::format("process {} is not a child of the lease's holder", pid));
  }
  GPUROTA_ASSIGN_OR_RETURN(TrackedProcess main,
                           track(parts_.processes, child.id(), on_main_death(id)));
  // With the pid, since another daemon may have a lease of this number.
  auto cgroup = parts_.processes.make_child_cgroup(
      pid, fmt::format("{}{}-{}", ports::kCgroupPrefix, to_string(id), pid));
  if (!cgroup) {
    log::debug("no cgroup for a lease, following its processes by pidfd",
               {{"lease", to_string(id)}, {"error", cgroup.error().message}});
  }
  entry.main = std::move(main);
  entry.subreaper = subreaper;
  const auto reaper = subreaper ? std::optional(entry.holder->id) : std::nullopt;
  entry.members.set_root(child.id(), cgroup.value_or(""), reaper);
  ++membership_changes_;
  GPUROTA_TRY(save(entry));
  parts_.on_change(entry, false);
  if (!cgroup) return std::optional<std::string>();
  return std::optional<std::string>(std::move(*cgroup));
}

void LeaseManager::abandon(LeaseId id) {
  const LeaseEntry* entry = find(id);
  if (entry && entry->holder && !entry->main)
    end(id, EndCause::kLost, "the connection closed before its start");
}

void LeaseManager::end(LeaseId id, EndCause cause, const std::string& reason) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  // Who asks again after its end could not be written asks for that.
  if (it->second.cause && !heard_of_end(id)) (void)save_end(id);
  if (it->second.cause) return;
  LeaseEntry& entry = it->second;
  entry.cause = cause;
  entry.reason = reason;
  entry.lease.state = LeaseState::kEnding;
  log::info("lease ends", {{"lease", to_string(id)},
                           {"uid", entry.lease.uid},
                           {"cause", name_of(cause)},
                           {"reason", reason}});
  if (auto saved = save_end(id); !saved) {
    log::error("cannot store that a lease ends, ending it anyway",
               {{"lease", to_string(id)}, {"error", saved.error().message}});
  }
  watch_endings(entry);
  parts_.on_change(entry, false);
}

// One that is gone is removed from the store by itself.
Result<void> LeaseManager::save_end(LeaseId id) {
  const auto it = entries_.find(id);
  return unstored_ends_.note(id.value, it == entries_.end() ? Result<void>() : save(it->second));
}

Result<void> LeaseManager::heard_of_end(LeaseId id) const {
  return unstored_ends_.heard_of(id.value, "the end of " + to_string(id));
}

void LeaseManager::watch_endings(LeaseEntry& entry) {
  const TimePoint now = parts_.loop.now();
  entry.kill_at = now + (parts_.grace_of ? parts_.grace_of(entry) : Duration(parts_.config.grace));
  entry.give_up_at = entry.kill_at + kMemoryPatience;
  entry.expiry.reset();
  entry.members.ask_to_end();
  const LeaseId id = entry.lease.id;
  // What a reservation only covers ends with its time, not when its user gives it back.
  if (entry.cause == EndCause::kExpired) entry.covered.ask_to_end();
  for (const auto& [pid, command] : entry.commands) stop_command(id, pid, "its lease is over");
  for (const LeaseGpu& gpu : entry.lease.gpus) parts_.look_soon(gpu.uuid);
  auto timer = parts_.loop.add_timer(now + kEndingPace, ports::Urgency::kSafety,
                                     [this, id] { step_ending(id); });
  if (timer) entry.timer = std::move(*timer);
}

void LeaseManager::step_ending(LeaseId id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  LeaseEntry& entry = it->second;
  const TimePoint now = parts_.loop.now();
  const bool living = is_alive(entry);
  if (living && now >= entry.kill_at) {
    if (!entry.killed) {
      log::warn("killing processes that did not end with their lease",
                {{"lease", to_string(id)}, {"uid", entry.lease.uid}});
    }
    entry.killed = true;
    entry.members.kill();
    if (entry.cause == EndCause::kExpired) entry.covered.kill();
  }
  if (!living) {
    if (memory_is_back(entry)) return finish(id);
    if (now >= entry.give_up_at) {
      log::error("the driver still counts memory of an ended lease, giving up on it",
                 {{"lease", to_string(id)}});
      return finish(id);
    }
    for (const LeaseGpu& gpu : entry.lease.gpus) parts_.look_soon(gpu.uuid);
  }
  auto timer = parts_.loop.add_timer(now + kEndingPace, ports::Urgency::kSafety,
                                     [this, id] { step_ending(id); });
  if (timer) entry.timer = std::move(*timer);
}

// Somebody may wait for what a filler held, and will take all of it: its last processes may have
// allocated after the last look, and the driver may list them no more before it has taken it back.
bool LeaseManager::memory_is_back(LeaseEntry& entry) const {
  // Nobody looks at a GPU that is lost, and nobody is given it before it is found again.
  const bool any_is_there =
      std::any_of(entry.lease.gpus.begin(), entry.lease.gpus.end(),
                  [&](const LeaseGpu& share) { return parts_.gpus.find(share.uuid) != nullptr; });
  if (!any_is_there) return true;
  if (parts_.holds_memory(entry.lease.id)) return false;
  if (entry.lease.kind != LeaseKind::kFiller) return true;
  if (!entry.empty_since) entry.empty_since = parts_.loop.now();
  return std::all_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    if (!gpu || !gpu->sample.error.empty()) return true;
    if (gpu->taken < *entry.empty_since) return false;
    Bytes listed;
    for (const GpuProcess& process : gpu->sample.processes) {
      if (!process.used) return true;
      listed += *process.used;
    }
    return gpu->sample.used - listed <= kUnlistedNoise ||
           parts_.loop.now() - *entry.empty_since >= kUnlistedPatience;
  });
}

bool LeaseManager::is_alive(LeaseEntry& entry) const {
  if (!entry.members.all_ended() || !entry.commands.empty()) return true;
  return entry.cause == EndCause::kExpired && !entry.covered.all_ended();
}

void LeaseManager::check_endings() {
  std::vector<LeaseId> ending, expired;
  for (const auto& [id, entry] : entries_) {
    if (entry.cause) ending.push_back(id);
    if (entry.lease.state == LeaseState::kExpired) expired.push_back(id);
  }
  for (const LeaseId id : ending) step_ending(id);
  for (const LeaseId id : expired) on_expiry(id);
}

void LeaseManager::finish(LeaseId id) {
  const auto it = entries_.find(id);
  if (auto removed = parts_.store.remove_lease(id); !removed) {
    unremoved_.insert(id);
    log::error("cannot remove an ended lease from the store, trying again",
               {{"lease", to_string(id)}, {"error", removed.error().message}});
  }
  it->second.members.clean_up();
  parts_.grants.close(id);
  const LeaseEntry entry = std::move(it->second);
  entries_.erase(it);
  remember_use(entry);
  log::info("lease gone", {{"lease", to_string(id)}, {"uid", entry.lease.uid}});
  parts_.on_change(entry, true);
}

void LeaseManager::add_process(LeaseId id, const ports::ProcessId& process) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.members.contains(process)) return;
  it->second.members.add(process);
  ++membership_changes_;
}

void LeaseManager::follow_processes() {
  for (auto& [id, entry] : entries_) {
    if (entry.main && entry.members.cgroup().empty()) entry.members.refresh();
    for (auto& [pid, command] : entry.commands) {
      if (command.members.cgroup().empty()) command.members.refresh();
    }
  }
}

}  // namespace gpurota::daemon
