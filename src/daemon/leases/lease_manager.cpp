#include "daemon/leases/lease_manager.h"

#include "base/log.h"
#include "daemon/leases/lease_containers.h"
#include "daemon/leases/lease_kill.h"
#include "daemon/leases/lease_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpurota::daemon {
namespace {

// The first pause between two checks of whether the processes of an ending lease are gone. The
// pidfd of a command reports its end at once, without this pause. The pause grows with the time
// since the last event, so that many leases that take long to end cost the daemon little.
constexpr Duration kEndingPace = std::chrono::milliseconds(10);
constexpr Duration kLongestPace = std::chrono::milliseconds(500);
constexpr int kPaceShare = 8;  // the pause is an eighth of the time since the last event
// A process that ends by itself with its command (a helper that sees its pipe closed) does so
// within this time. A process that lives longer was left running.
constexpr Duration kOwnEnd = std::chrono::milliseconds(30);
// The pause is at least this many times as long as the check took.
constexpr int kPauses = 10;
// How long an ending lease waits for NVML to stop counting its memory before the daemon gives up: a
// driver took 4.7 s when a forked child lived on (measured), so this is several times that.
constexpr Duration kMemoryPatience = std::chrono::seconds(60);
// A process that still exists this long after SIGKILL is stuck in the kernel, for example waiting
// for a file system that does not answer. Such a process executes no more of its program.
constexpr Duration kUnkillable = kEngineTakes + std::chrono::seconds(10);

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
    case EndCause::kBooking:
      return "booking";
  }
  return "";
}

constexpr const char* kCommandEnded = "its command has ended";
constexpr const char* kHolderGone = "the process that held it is gone";

// The times after the grace at which more and more processes are killed (lease_kill.h).
constexpr std::array<Duration, 3> kKillStages = {Duration(0), kEngineSees, kEngineTakes};
constexpr int kDead = kKillStages.size() + 1;

int kill_stage(const LeaseEntry& entry, TimePoint now) {
  return static_cast<int>(std::count_if(kKillStages.begin(), kKillStages.end(), [&](Duration late) {
    return now >= entry.kill_at + late;
  }));
}

bool is_alive(LeaseEntry& entry) {
  if (!entry.members.all_ended() || !entry.commands.empty()) return true;
  return entry.cause == EndCause::kExpired && !entry.covered.all_ended();
}

// Whether the lease's processes were killed long ago and still exist: they execute no more of their
// programs.
bool has_stopped_for_good(const LeaseEntry& entry, TimePoint now, const lease::GrantBook& grants) {
  if (!entry.killed || now < entry.kill_at + kUnkillable) return false;
  const bool all_killed =
      entry.members.all_killed() &&
      (entry.cause != EndCause::kExpired || entry.covered.all_killed()) &&
      std::all_of(entry.commands.begin(), entry.commands.end(),
                  [](const auto& each) { return each.second.members.all_killed(); });
  if (!all_killed) return false;
  if (now >= entry.give_up_at) return true;
  // If the driver lists no processes, granted memory may still be on the GPU.
  return !entry.lease.swap() &&
         std::all_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
           const auto* const account = grants.find(entry.lease.id, share.uuid).if_there();
           return account == nullptr || account->charged().is_zero();
         });
}

}  // namespace

bool LeaseManager::holds_memory(LeaseId id) const {
  return parts_.grants.has_dead(id) || parts_.hooks.holds_memory(id);
}

Result<void> LeaseManager::save(const LeaseEntry& entry) {
  return save_lease(entry, parts_.processes.boot_id(), parts_.store, tables_);
}

void LeaseManager::on_holder_death(LeaseId id) {
  const LeaseEntry* const entry = tables_.find(id);
  if (entry && entry->automatic) return on_process_death(id);
  end(id, EndCause::kLost, kHolderGone);
}

void LeaseManager::on_process_death(LeaseId id) {
  const auto it = tables_.leases.find(id);
  if (it == tables_.leases.end() || !it->second.automatic || it->second.cause) return;
  if (it->second.members.all_ended()) {
    end(id, EndCause::kFinished, "its processes have ended");
  }
}

Result<void> LeaseManager::restore() {
  GPUROTA_ASSIGN_OR_RETURN(const std::vector<ports::StoredLease> leases,
                           parts_.store.load_leases());
  GPUROTA_TRY(parts_.states.restore());
  settled_at_ = parts_.loop.now() +
                std::max<Duration>(parts_.config.reconnect_grace, std::chrono::seconds(1));
  const std::string boot_id = parts_.processes.boot_id();
  for (const ports::StoredLease& stored : leases) GPUROTA_TRY(restore_one(stored, boot_id));
  return {};
}

// Fails if it is not known which processes of the lease are alive, so that none is taken for dead
// by mistake.
Result<void> LeaseManager::restore_one(const ports::StoredLease& stored,
                                       const std::string& boot_id) {
  LeaseEntry entry(parts_.processes);
  entry.lease = lease_of(stored);
  entry.ticket = stored.ticket;
  entry.booking = stored.booking;
  entry.unused_since = stored.unused_since;
  entry.token = stored.token;
  // Pids and cgroups of another boot mean nothing.
  const bool same_boot = stored.boot_id == boot_id;
  using Found = Result<std::optional<TrackedProcess>>;
  const auto find = [&](const std::optional<ports::ProcessId>& process,
                        std::function<void()> on_death) -> Found {
    if (!process || !same_boot) return std::nullopt;
    return unless_gone(track(parts_.processes, *process, std::move(on_death)));
  };
  const LeaseId id = stored.id;
  // Only in an automatic lease is the first process also the holder.
  entry.automatic = stored.main && stored.main == stored.holder;
  GPUROTA_ASSIGN_OR_RETURN(entry.holder, find(stored.holder, [this, id] { on_holder_death(id); }));
  std::function<void()> on_main_death;
  if (!entry.automatic) {
    on_main_death = [this, id] { end(id, EndCause::kFinished, kCommandEnded); };
  }
  GPUROTA_ASSIGN_OR_RETURN(entry.main, find(stored.main, std::move(on_main_death)));
  entry.subreaper = stored.subreaper;
  entry.needs_driver_limit = stored.needs_driver_limit;
  entry.pod_uid = stored.pod_uid;
  entry.kubelet_container = stored.kubelet_container;
  if (same_boot) entry.containers = stored.containers;
  if (same_boot) entry.parked = stored.parked;
  // The room of a parked lease may be another lease's.
  if (!same_boot && is_off(entry.lease.park)) entry.lease.park = ParkState::kWaiting;
  if (entry.parked.empty() && !is_off(entry.lease.park)) entry.lease.park = ParkState::kNone;
  const auto id_of = [](const std::optional<TrackedProcess>& process) {
    return process ? std::optional(process->id) : std::nullopt;
  };
  const auto reaper = entry.subreaper && stored.cgroup.empty() ? id_of(entry.holder) : std::nullopt;
  if (entry.automatic) {
    if (entry.main) entry.members.add(entry.main->id);
  } else if (same_boot && (entry.main || !stored.cgroup.empty())) {
    entry.members.set_root(id_of(entry.main), stored.cgroup, reaper);
  }
  const bool holder = entry.holder.has_value();
  const bool main = entry.main.has_value();
  if (entry.automatic && !main && same_boot) {
    // Children of the process that asked may live, and connect again within the grace.
    entry.timer =
        parts_.loop.add_timer(parts_.loop.now() + parts_.config.reconnect_grace,
                              ports::Urgency::kSafety, [this, id] { on_process_death(id); });
  }
  const bool waits = entry.timer != nullptr || stands_alone(entry.lease.kind);
  if (same_boot) GPUROTA_TRY(commands_.restore(entry, stored));
  parts_.grants.open(entry.lease);
  const auto [added, fresh] = tables_.leases.emplace(id, std::move(entry));
  arm_expiry(added->second);
  log::info("lease restored", {{"lease", to_string(id)}, {"running", main}});
  if (stored.ending) {
    end(id, EndCause::kReleased, "it was ending when the daemon stopped");
  } else if (!main && !waits && (stored.main || !holder)) {
    end(id, EndCause::kFinished, "its command ended while the daemon was away");
  } else if (main && !holder) {
    end(id, EndCause::kLost, "the process that held it ended while the daemon was away");
  }
  return {};
}

tl::expected<const LeaseEntry*, lease::Refusal> LeaseManager::make(
    const AcquireRequest& request, std::vector<LeaseGpu> gpus, std::optional<RequestId> waited) {
  const auto refuse = [](Error error) {
    return tl::unexpected<lease::Refusal>(lease::Refusal{std::move(error), 0, 0});
  };
  auto id = parts_.store.next_lease_id();
  if (!id) {
    tables_.store_error = id.error();
    return refuse(std::move(id).error().context("cannot make a lease"));
  }

  LeaseEntry entry(parts_.processes);
  entry.lease.id = *id;
  entry.lease.uid = request.uid;
  entry.lease.since = parts_.wall_clock();
  entry.lease.kind = request.kind;
  if (request.lasts) entry.lease.ends = entry.lease.since + *request.lasts;
  entry.lease.gpus = std::move(gpus);
  entry.needs_driver_limit = parts_.config.enforcement == config::Enforcement::kDriver &&
                             !entry.lease.exclusive() && !entry.lease.swap();
  entry.lease.priority = request.priority;
  entry.lease.quantum = request.quantum;
  entry.lease.latency = request.latency;
  entry.lease.warning = request.warning;
  entry.lease.as_name = request.as_name;
  entry.lease.name = request.name;
  entry.ticket = request.ticket;
  entry.booking = request.booking;
  entry.unused_since = request.unused_since;
  entry.pod_uid = request.pod_uid;
  entry.kubelet_container = request.kubelet_container;
  entry.lease.note = request.note;
  entry.lease.command = request.command;
  entry.token = request.token.empty() ? parts_.make_token() : request.token;
  if (!stands_alone(request.kind)) {
    auto holder =
        track(parts_.processes, request.process, [this, id = *id] { on_holder_death(id); });
    if (!holder) return refuse(std::move(holder).error().context("cannot follow the caller"));
    entry.holder = std::move(*holder);
  }
  if (request.automatic) {
    auto main = track(parts_.processes, request.process, nullptr);
    if (!main) return refuse(std::move(main).error().context("cannot follow the caller"));
    entry.main = std::move(*main);
    entry.automatic = true;
    entry.members.add(request.process);
    if (request.container) entry.containers.push_back(*request.container);
    ++tables_.membership_changes;
  }
  if (auto checked = parts_.hooks.check_new(entry); !checked) return refuse(checked.error());
  auto saved = waited
                   ? parts_.store.grant_request(*waited, row_of(entry, parts_.processes.boot_id()))
                   : save(entry);
  if (!saved) return refuse(std::move(saved).error().context("cannot store the lease"));
  parts_.grants.open(entry.lease);
  const auto [it, added] = tables_.leases.emplace(*id, std::move(entry));
  arm_expiry(it->second);
  log::info("lease made", {{"lease", to_string(*id)}, {"uid", request.uid}});
  parts_.hooks.publish(it->second, false);
  return &it->second;
}

Result<std::optional<std::string>> LeaseManager::start(LeaseId id, pid_t number, bool subreaper) {
  const auto it = tables_.leases.find(id);
  if (it == tables_.leases.end() || it->second.cause) {
    return fail(Code::kGone, to_string(id) + " has ended");
  }
  LeaseEntry& entry = it->second;
  if (!entry.holder) return fail(Code::kInvalid, to_string(id) + " is for no command");
  GPUROTA_ASSIGN_OR_RETURN(const pid_t pid,
                           parts_.processes.child_called(entry.holder->id, number));
  // A client that did not get the last daemon's answer repeats its question to the next daemon.
  if (entry.main && entry.main->pid() == pid) {
    moves_.begin(id, pid);
    return entry.members.own_cgroup();
  }
  if (entry.main) return fail(Code::kInvalid, to_string(id) + " runs a command already");
  GPUROTA_ASSIGN_OR_RETURN(const ports::ProcessInfo child, parts_.processes.read_info(pid));
  // A pid is not reused while its process lives. So if the holder lives, a process whose parent has
  // the holder's pid is the holder's child.
  const bool is_child = child.parent == entry.holder->pid() && entry.holder->alive();
  if (!is_child || child.uid != entry.lease.uid) {
    return fail(Code::kDenied, fmt::format("process {} is not a child of the lease's holder", pid));
  }
  GPUROTA_ASSIGN_OR_RETURN(TrackedProcess main, track(parts_.processes, child.id(), [this, id] {
                             end(id, EndCause::kFinished, kCommandEnded);
                           }));
  // The name contains the pid, since another daemon may have a lease of this number.
  auto cgroup = parts_.processes.cgroups().make_below(
      pid, fmt::format("{}{}-{}", ports::kCgroupPrefix, to_string(id), pid));
  if (!cgroup) {
    log::debug("no cgroup for a lease, following its processes by pidfd",
               {{"lease", to_string(id)}, {"error", cgroup.error().message}});
  }
  entry.main = std::move(main);
  entry.subreaper = subreaper;
  const auto reaper = subreaper ? std::optional(entry.holder->id) : std::nullopt;
  entry.members.set_root(child.id(), cgroup.value_or(""), reaper);
  ++tables_.membership_changes;
  GPUROTA_TRY(save(entry));
  parts_.hooks.publish(entry, false);
  moves_.begin(id, pid);
  return entry.members.own_cgroup();
}

Result<std::optional<std::string>> LeaseManager::start_command(LeaseId id,
                                                               const CommandStart& start) {
  LeaseEntry* const entry = tables_.find(id);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(id) + " has ended");
  CommandStart ours = start;
  GPUROTA_ASSIGN_OR_RETURN(ours.pid, parts_.processes.child_called(start.caller, start.pid));
  return commands_.start(*entry, ours);
}

Result<void> LeaseManager::change(Lease changed, std::optional<Author> by) {
  LeaseEntry* const entry = tables_.find(changed.id);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(changed.id) + " has ended");
  // If no process handles the signal yet, the lease does not count as warned.
  if (changed.warned && !entry->lease.warned) {
    entry->signalled = warn_programs(*entry, changed.warning.signal);
    changed.warned = entry->signalled > 0;
  }
  std::swap(entry->lease, changed);
  if (auto saved = save(*entry); !saved) {
    std::swap(entry->lease, changed);
    return saved;
  }
  parts_.grants.open(entry->lease);
  arm_expiry(*entry);
  entry->by = std::move(by);
  parts_.hooks.publish(*entry, false);
  // publish() may have led to the end of the lease.
  if (LeaseEntry* const still = tables_.find(changed.id); still && !still->cause) still->by.reset();
  return {};
}

void LeaseManager::abandon(LeaseId id) {
  const LeaseEntry* entry = tables_.find(id);
  if (entry && entry->holder && !entry->main)
    end(id, EndCause::kLost, "the connection closed before its start");
}

void LeaseManager::end(LeaseId id, EndCause cause, const std::string& reason,
                       std::optional<Author> by) {
  const auto it = tables_.leases.find(id);
  if (it == tables_.leases.end()) return;
  // If the end could not be stored, a second call tries again.
  if (it->second.cause && !heard_of_end(id)) (void)save_end(id);
  if (it->second.cause) return;
  LeaseEntry& entry = it->second;
  entry.cause = cause;
  entry.reason = reason;
  if (reason == kCommandEnded || reason == kHolderGone) {
    entry.reason = parts_.hooks.end_of_command(entry).value_or(reason);
  }
  entry.by = std::move(by);
  entry.lease.state = LeaseState::kEnding;
  log::info("lease ends", {{"lease", to_string(id)},
                           {"uid", entry.lease.uid},
                           {"cause", name_of(cause)},
                           {"reason", entry.reason}});
  if (auto saved = save_end(id); !saved) {
    log::error("cannot store that a lease ends, ending it anyway",
               {{"lease", to_string(id)}, {"error", saved.error().message}});
  }
  watch_endings(entry);
  parts_.hooks.publish(entry, false);
}

// A lease that is gone is not stored: finish() removes it from the store.
Result<void> LeaseManager::save_end(LeaseId id) {
  const auto it = tables_.leases.find(id);
  return unstored_ends_.note(id.value,
                             it == tables_.leases.end() ? Result<void>() : save(it->second));
}

Result<void> LeaseManager::heard_of_end(LeaseId id) const {
  return unstored_ends_.heard_of(id.value, "the end of " + to_string(id));
}

void LeaseManager::watch_endings(LeaseEntry& entry) {
  const TimePoint now = parts_.loop.now();
  const Duration grace = parts_.hooks.grace_of(entry).value_or(parts_.config.grace);
  entry.ask_at = entry.cause == EndCause::kFinished ? now + kOwnEnd : now;
  entry.kill_at = now + grace;
  entry.give_up_at = entry.kill_at + kMemoryPatience;
  entry.step_began = now;
  entry.expiry.reset();
  const LeaseId id = entry.lease.id;
  if (now >= entry.ask_at) ask_to_end(entry);
  // Processes that a reservation only covers end when its time is over, but not when its user
  // releases it.
  if (entry.cause == EndCause::kExpired) entry.covered.ask_to_end();
  for (const auto& [pid, command] : entry.commands) commands_.stop(id, pid, "its lease is over");
  for (const LeaseGpu& gpu : entry.lease.gpus) parts_.samples.sample_soon(gpu.uuid);
  entry.timer = parts_.loop.add_timer(now + kEndingPace, ports::Urgency::kSafety,
                                      [this, id] { step_ending(id); });
}

void LeaseManager::step_ending(LeaseId id) {
  const auto it = tables_.leases.find(id);
  if (it == tables_.leases.end()) return;
  LeaseEntry& entry = it->second;
  const TimePoint now = parts_.loop.now();
  const bool alive = is_alive(entry);
  const bool living = alive && !has_stopped_for_good(entry, now, parts_.grants);
  if (living && !entry.asked && now >= entry.ask_at) ask_to_end(entry);
  if (living && now >= entry.kill_at) {
    if (!entry.killed) {
      log::warn("killing processes that did not end with their lease",
                {{"lease", to_string(id)}, {"uid", entry.lease.uid}});
    }
    entry.killed = true;
    kill_leftovers(entry.members, entry.main ? &*entry.main : nullptr, now - entry.kill_at);
    if (entry.cause == EndCause::kExpired) entry.covered.kill();
  }
  if (!living) {
    if (memory_is_back(entry)) {
      if (alive) {
        log::warn("processes that cannot be killed outlive their lease, which ends without them",
                  {{"lease", to_string(id)}, {"uid", entry.lease.uid}});
      }
      return finish(id);
    }
    if (now >= entry.give_up_at) {
      log::error("the driver still counts memory of an ended lease, giving up on it",
                 {{"lease", to_string(id)}});
      return finish(id);
    }
    for (const LeaseGpu& gpu : entry.lease.gpus) parts_.samples.sample_soon(gpu.uuid);
  }
  // Without cgroups each check reads all processes, which takes long on a busy machine. The pause
  // then grows, and leaves most of the time to other work.
  const TimePoint after = parts_.loop.now();
  const int step = living ? kill_stage(entry, now) : kDead;
  if (entry.ending_step != step) {
    entry.ending_step = step;
    entry.step_began = now;
  }
  const Duration pace =
      std::clamp<Duration>((now - entry.step_began) / kPaceShare, kEndingPace, kLongestPace);
  TimePoint next = after + std::max(pace, kPauses * (after - now));
  for (const Duration late : kKillStages) {
    if (living && after < entry.kill_at + late) next = std::min(next, entry.kill_at + late);
  }
  entry.timer =
      parts_.loop.add_timer(next, ports::Urgency::kSafety, [this, id] { step_ending(id); });
}

bool LeaseManager::memory_is_back(LeaseEntry& entry) const {
  // A lost GPU is not sampled, and is given to nobody before it is found again.
  const bool any_is_there =
      std::any_of(entry.lease.gpus.begin(), entry.lease.gpus.end(),
                  [&](const LeaseGpu& share) { return parts_.gpus.find(share.uuid) != nullptr; });
  if (!any_is_there) return true;
  if (holds_memory(entry.lease.id)) return false;
  if (entry.lease.kind != LeaseKind::kFiller) return true;
  // A waiting request gets all of the GPU at once. So a new sample must first show what the filler
  // allocated after the last sample. Memory that the driver has still not taken back by the time of
  // that sample is hidden memory.
  if (!entry.empty_since) entry.empty_since = parts_.loop.now();
  return std::all_of(entry.lease.gpus.begin(), entry.lease.gpus.end(), [&](const LeaseGpu& share) {
    const GpuEntry* const gpu = parts_.gpus.find(share.uuid);
    return !gpu || !gpu->sample.error.empty() || gpu->taken >= *entry.empty_since;
  });
}

void LeaseManager::check_endings() {
  std::vector<LeaseId> ending, expired;
  for (const auto& [id, entry] : tables_.leases) {
    if (entry.cause) ending.push_back(id);
    if (entry.lease.state == LeaseState::kExpired) expired.push_back(id);
  }
  for (const LeaseId id : ending) step_ending(id);
  for (const LeaseId id : expired) on_expiry(id);
}

void LeaseManager::finish(LeaseId id) {
  const auto it = tables_.leases.find(id);
  if (auto removed = parts_.store.remove_lease(id); !removed) {
    unremoved_.insert(id);
    log::error("cannot remove an ended lease from the store, trying again",
               {{"lease", to_string(id)}, {"error", removed.error().message}});
  }
  it->second.members.clean_up();
  parts_.grants.close(id);
  const LeaseEntry entry = std::move(it->second);
  tables_.leases.erase(it);
  parts_.states.remember_use(entry.lease, parts_.wall_clock());
  log::info("lease gone", {{"lease", to_string(id)}, {"uid", entry.lease.uid}});
  parts_.hooks.publish(entry, true);
}

Result<void> LeaseManager::add_process(LeaseId id, const ports::ProcessId& process) {
  LeaseEntry* const entry = tables_.find(id);
  if (!entry || entry->members.contains(process)) return {};
  GPUROTA_TRY(entry->members.add(process));
  ++tables_.membership_changes;
  if (auto container = find_new_container(parts_.processes, *entry, process)) {
    entry->containers.push_back(std::move(*container));
    // If storing fails, the next daemon finds the container by its next process.
    (void)save(*entry);
    // Later, because the caller is admitting the process.
    parts_.loop.post([this, id] {
      const LeaseEntry* const still = tables_.find(id);
      if (still && !still->cause) parts_.hooks.publish(*still, false);
    });
  }
  return {};
}

void LeaseManager::follow_processes() {
  for (auto& [id, entry] : tables_.leases) {
    if (entry.main && entry.members.cgroup().empty()) entry.members.refresh();
    for (auto& [pid, command] : entry.commands) {
      if (command.members.cgroup().empty()) command.members.refresh();
    }
  }
}

void LeaseManager::check_store() {
  while (!unremoved_.empty() && parts_.store.remove_lease(*unremoved_.begin())) {
    unremoved_.erase(unremoved_.begin());
  }
  unstored_ends_.write_again([this](std::uint64_t id) { return save_end(LeaseId{id}); });
  const auto saved = parts_.states.try_store();
  if (!saved) return;
  tables_.store_error = *saved ? std::nullopt : std::optional(saved->error());
}

void LeaseManager::arm_expiry(LeaseEntry& entry) {
  entry.expiry.reset();
  if (!entry.lease.ends || entry.cause || entry.lease.state == LeaseState::kExpired) return;
  const Duration left = *entry.lease.ends - parts_.wall_clock();
  // For a while after a restart it is not known which processes use which GPUs.
  const Duration least = std::max(settled_at_ - parts_.loop.now(), Duration(0));
  const Duration wait = std::max(std::clamp(left, Duration(0), ports::kLongestWallWait), least);
  entry.expiry = parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kSafety,
                                       [this, id = entry.lease.id] { on_expiry(id); });
}

bool LeaseManager::is_in_use(LeaseId id) {
  LeaseEntry* const entry = tables_.find(id);
  return entry && (!entry->members.list().empty() || !entry->commands.empty() ||
                   !entry->covered.list().empty() || holds_memory(id));
}

void LeaseManager::on_expiry(LeaseId id) {
  const auto it = tables_.leases.find(id);
  if (it == tables_.leases.end() || it->second.cause || !it->second.lease.ends) return;
  LeaseEntry& entry = it->second;
  const auto this_timer = std::move(entry.expiry);
  if (parts_.wall_clock() < *entry.lease.ends) return arm_expiry(entry);
  const bool lives_on = entry.lease.kind == LeaseKind::kReservation && is_in_use(id) &&
                        parts_.config.expired_reservation != config::Expired::kStop;
  if (!lives_on) {
    return end(id, EndCause::kExpired,
               entry.lease.kind == LeaseKind::kReservation ? "its time is over"
                                                           : "its time limit is over");
  }
  if (entry.lease.state == LeaseState::kExpired) return;
  entry.lease.state = LeaseState::kExpired;
  log::warn("a reservation is over but its GPUs are still in use", {{"lease", to_string(id)}});
  parts_.hooks.publish(entry, false);
}

void LeaseManager::cover(LeaseId id, const ports::ProcessId& process) {
  LeaseEntry* const entry = tables_.find(id);
  if (!entry) return;
  entry->covered.add(process);
  if (auto used = use(id); !used) {
    log::warn("cannot store that a booking is used, continuing",
              {{"lease", to_string(id)}, {"error", used.error().message}});
  }
}

Result<void> LeaseManager::set_park(LeaseId id, ParkState state,
                                    std::vector<ports::ProcessId> processes) {
  LeaseEntry* const entry = tables_.find(id);
  if (!entry || entry->cause) return fail(Code::kGone, to_string(id) + " has ended");
  const ParkState before = std::exchange(entry->lease.park, state);
  std::swap(entry->parked, processes);
  if (auto saved = save(*entry); !saved) {
    entry->lease.park = before;
    std::swap(entry->parked, processes);
    return saved;
  }
  parts_.hooks.publish(*entry, false);
  return {};
}

Result<void> LeaseManager::use(LeaseId id) {
  LeaseEntry* const entry = tables_.find(id);
  if (!entry || !entry->unused_since) return {};
  entry->unused_since.reset();
  return save(*entry);
}

}  // namespace gpurota::daemon
