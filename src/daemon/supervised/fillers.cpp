#include "daemon/supervised/fillers.h"

#include "base/log.h"
#include "base/text.h"
#include "daemon/gpus/parked_room.h"
#include "daemon/supervised/filler_adoption.h"
#include "jobs/log_ring.h"
#include "jobs/supervision.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

std::string reason_of(filler::Why why) {
  switch (why) {
    case filler::Why::kForeign:
      return "a process without a lease is on it";
    case filler::Why::kLeased:
      return "there is a lease on it";
    case filler::Why::kOutOfService:
      return "it is out of service";
    case filler::Why::kPaused:
      return "it is paused";
    case filler::Why::kRemoved:
      return "it is being removed";
    case filler::Why::kStayOver:
      return "its stay is over, and another filler waits";
    case filler::Why::kWanted:
    case filler::Why::kHidden:
    case filler::Why::kLoad:
    case filler::Why::kNobody:
      break;
  }
  return "somebody needs it";
}

// "it was paused by alice".
std::string control_text(const FillerEntry& entry, Fillers::What what, const std::string& by) {
  return fmt::format("it was {} {}", what == Fillers::What::kRemove ? "removed" : "paused",
                     by.empty() ? "by " + display_text(entry.user, 32) : by);
}

}  // namespace

Fillers::Fillers(Parts parts) : table_(std::move(parts), *this) {}

Result<void> Fillers::restore() { return FillerAdoption(table_, moves_, *this).take_up_all(); }

bool Fillers::is_of_interest(const GpuUuid& gpu) const {
  const auto spot = table_.spots.find(gpu);
  if (spot != table_.spots.end() && spot->second.filler) return true;
  return std::any_of(table_.entries.begin(), table_.entries.end(), [&](const auto& each) {
    return !each.second.paused && !each.second.removed && each.second.wishes.may_use(gpu);
  });
}

std::optional<Duration> Fillers::grace_of(const LeaseEntry& entry) const {
  if (entry.lease.kind != LeaseKind::kFiller) return std::nullopt;
  const Duration usual = FillerWishes().grace;
  if (entry.lease.gpus.empty()) return usual;
  const auto spot = table_.spots.find(entry.lease.gpus.front().uuid);
  if (spot == table_.spots.end() || !spot->second.filler) return usual;
  const auto it = table_.entries.find(*spot->second.filler);
  return it == table_.entries.end() ? usual : Duration(it->second.wishes.grace);
}

filler::Sight Fillers::sight_of(const GpuUuid& gpu, bool foreign) const {
  filler::Sight sight;
  const GpuEntry* const entry = table_.parts.gpus.find(gpu);
  sight.in_service = entry && entry->sample.error.empty() && !entry->info.mig_enabled &&
                     !table_.parts.states.of(gpu).draining;
  sight.foreign = foreign;
  const watch::Hidden& hidden = table_.parts.states.unreserved(gpu).hidden;
  sight.hidden = hidden.is_leaving || hidden.in_use;
  sight.load_percent = entry ? entry->sample.load_percent.value_or(0) : 0;
  const auto spot = table_.spots.find(gpu);
  for (const auto& [id, lease] : table_.parts.tables.leases) {
    const bool own = spot != table_.spots.end() && spot->second.lease == id;
    if (own || !entry || !lease.lease.find_gpu(gpu)) continue;
    if (counts_on(lease.lease, entry->info)) sight.leased = true;
  }
  return sight;
}

void Fillers::on_sample(const GpuUuid& gpu, bool foreign, const std::map<LeaseId, Bytes>& used) {
  if (foreign) {
    // Leases that somebody started with `gpurota run --filler`.
    std::vector<LeaseId> others;
    for (const auto& [id, lease] : table_.parts.tables.leases) {
      const auto spot = table_.spots.find(gpu);
      const bool ours = spot != table_.spots.end() && spot->second.lease == id;
      if (lease.lease.kind == LeaseKind::kFiller && lease.lease.find_gpu(gpu) && !ours) {
        others.push_back(id);
      }
    }
    for (const LeaseId id : others) {
      table_.parts.leases.end(id, EndCause::kReleased, reason_of(filler::Why::kForeign));
    }
  }
  if (!is_of_interest(gpu)) return;
  FillerSpot& spot = table_.spots[gpu];
  const auto of_lease = spot.lease ? used.find(*spot.lease) : used.end();
  spot.counted = of_lease == used.end() ? Bytes() : of_lease->second;
  evaluate(gpu, sight_of(gpu, foreign));
  moves_.step_eviction(gpu);
}

void Fillers::on_failed_sample(const GpuUuid& gpu) {
  if (is_of_interest(gpu)) evaluate(gpu, sight_of(gpu, false));
}

void Fillers::on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids) {
  const GpuEntry* const entry = table_.parts.gpus.find(gpu);
  if (!entry) return;
  const auto& known = entry->sample.processes;
  const bool news = std::any_of(pids.begin(), pids.end(), [&](pid_t pid) {
    return std::none_of(known.begin(), known.end(),
                        [&](const GpuProcess& process) { return process.pid == pid; });
  });
  if (news) table_.parts.samples.sample_soon(gpu);
}

void Fillers::evaluate(const GpuUuid& gpu, const filler::Sight& sight) {
  FillerSpot& spot = table_.spots[gpu];
  spot.turns.set_rules(choice_.rules_for(gpu));
  if (spot.turns.observe(sight, table_.parts.loop.now())) {
    yield(gpu, reason_of(spot.turns.why()));
  } else if (spot.moved_out && table_.parts.states.of(gpu).draining) {
    leave(gpu, reason_of(filler::Why::kOutOfService));
  } else if (sight.in_service && choice_.stay_is_over(gpu)) {
    if (spot.moved_out ? spot.turns.state() == filler::State::kFree
                       : spot.turns.dismiss(filler::Why::kStayOver)) {
      leave(gpu, reason_of(filler::Why::kStayOver));
    }
  } else if (spot.turns.state() == filler::State::kFree) {
    spot.filler ? moves_.bring_back(gpu) : start_one(gpu);
  }
}

Result<std::uint64_t> Fillers::run_on(FillerEntry& entry, const GpuUuid& gpu) {
  const auto at = std::find(entry.places.begin(), entry.places.end(), gpu);
  const auto place = static_cast<std::size_t>(at - entry.places.begin());
  if (at == entry.places.end()) {
    if (place >= FillerTable::kMostPlaces)
      return fail(Code::kLimit, "it has been on too many GPUs");
    // The log of the first GPU has been counted since the filler was added.
    if (place > 0) GPUROTA_TRY(check_log(entry.uid));
    entry.places.push_back(gpu);
    if (auto saved = table_.save(entry); !saved) {
      // Do not start a run there: the next daemon would not find the run.
      entry.places.pop_back();
      return tl::unexpected(saved.error());
    }
    table_.count_logs(entry);
  }
  return table_.run_at(entry, place);
}

Result<void> Fillers::launch(FillerEntry& entry, const GpuUuid& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t run, run_on(entry, gpu));
  jobs::JobSpec spec = entry.spec;
  spec.options = {"--filler", "--nonblock", "--gpu-ids", gpu.value};
  if (entry.wishes.on_yield == filler::OnYield::kEvict) spec.options.emplace_back("--swap");
  if (const auto memory = entry.wishes.memory_of(table_.parts.availability.available_on(gpu))) {
    spec.options.emplace_back("--memory");
    spec.options.push_back(memory->percent != 0 ? fmt::format("{}%", memory->percent)
                                                : std::to_string(memory->bytes.count()));
  }
  GPUROTA_TRY(table_.supervisor.launch(run, entry, spec));
  FillerSpot& spot = table_.spots[gpu];
  spot.filler = entry.id;
  spot.run = run;
  spot.since = entry.last_start = table_.parts.loop.now();
  spot.stayed = Duration(0);
  spot.may_lack_lease = false;
  spot.stays_from = spot.since;
  return {};
}

void Fillers::leave(const GpuUuid& gpu, const std::string& reason) {
  FillerSpot& spot = table_.spots[gpu];
  const auto it = spot.filler ? table_.entries.find(*spot.filler) : table_.entries.end();
  if (it == table_.entries.end() || spot.told_to_end) return;
  spot.told_to_end = true;
  // A run that was on the GPU for a while before it had to leave counts as good, so earlier
  // failures no longer matter.
  if (table_.parts.loop.now() - spot.since >= filler::Rules{}.good_stay) {
    it->second.failures = 0;
    it->second.problem.clear();
  }
  spot.eviction.reset();
  spot.check_timer.reset();
  table_.record(proto::EventType::kFillerYielded, it->second, gpu,
                fmt::format("leaves {}: {}", table_.gpu_name(gpu), reason));
  if (spot.lease) {
    table_.parts.leases.end(*spot.lease, EndCause::kReleased, reason);
  } else {
    table_.supervisor.end(spot.run);
  }
  const Duration grace = it->second.wishes.grace + Supervisor::kKeeperGrace;
  spot.kill_timer = table_.parts.loop.add_timer(
      table_.parts.loop.now() + grace, ports::Urgency::kSafety, [this, gpu] {
        FillerSpot& late = table_.spots[gpu];
        const auto this_timer = std::move(late.kill_timer);
        table_.supervisor.kill(late.run);
      });
}

void Fillers::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (entry.lease.kind != LeaseKind::kFiller || entry.lease.gpus.empty()) return;
  const GpuUuid gpu = entry.lease.gpus.front().uuid;
  const LeaseId id = entry.lease.id;
  const auto it = table_.spots.find(gpu);
  const bool away = gone || (it != table_.spots.end() && it->second.moved_out);
  table_.parts.samples.poll_processes(gpu, away ? Duration(0) : filler::kSampleEvery);
  if (it == table_.spots.end()) return;
  FillerSpot& spot = it->second;
  if (!spot.lease && !gone && table_.is_kept_by(entry, spot)) {
    spot.lease = id;
    spot.may_lack_lease = false;
    // The filler had to leave while it was still starting.
    if (spot.turns.state() == filler::State::kLeaving) {
      table_.parts.loop.post([this, id, why = spot.turns.why()] {
        table_.parts.leases.end(id, EndCause::kReleased, reason_of(why));
      });
    }
  }
  if (spot.lease != id) return;
  if (gone) {
    spot.lease.reset();
    return settle_spot(gpu);
  }
  // The lease was ended by the queue, or by a user who may end it.
  const bool asked_to = entry.cause == EndCause::kReleased || entry.cause == EndCause::kExpired ||
                        entry.cause == EndCause::kBooking;
  if (!asked_to || spot.told_to_end) return;
  if (spot.turns.state() == filler::State::kOn) {
    filler::Sight sight;
    sight.wanted = true;
    (void)spot.turns.observe(sight, table_.parts.loop.now());
  } else if (!spot.eviction && !spot.moved_out) {
    return;
  }
  const auto way = table_.way_out_of(gpu);
  leave(gpu, entry.reason + (way.because.empty() ? "" : ", and " + way.because));
}

void Fillers::on_handed_over(std::uint64_t run) {
  const FillerSpot& spot = table_.spots[table_.gpu_of(run)];
  // The run may have its lease already, or may have had to leave.
  for (const auto& [id, lease] : table_.parts.tables.leases) on_lease_change(lease, false);
  if (spot.turns.state() == filler::State::kLeaving && !spot.lease) table_.supervisor.end(run);
}

void Fillers::on_over(std::uint64_t run) {
  const GpuUuid gpu = table_.gpu_of(run);
  const FillerSpot& spot = table_.spots[gpu];
  const bool was_on = spot.turns.state() == filler::State::kOn || spot.eviction || spot.moved_out;
  if (was_on && spot.filler && !spot.told_to_end)
    ended_by_itself(table_.entries.at(*spot.filler), gpu);
  settle_spot(gpu);
}

void Fillers::ended_by_itself(FillerEntry& entry, const GpuUuid& gpu) {
  constexpr int kNoGpuLeft = 75;  // `gpurota run --nonblock`: another request got the GPU
  const TimePoint now = table_.parts.loop.now();
  const std::uint64_t run = table_.spots[gpu].run;
  const auto report = table_.supervisor.files().read_report(run);
  std::string how = "its keeper left no report";
  bool failed = true, raced = false;
  if (report && !report->cannot_start.empty()) {
    how = report->cannot_start;
  } else if (report) {
    how = fmt::format("{} {}", report->signalled ? "killed by signal" : "exited", report->code);
    // The run was still asking an earlier daemon, which has gone.
    const bool unheard = table_.spots[gpu].may_lack_lease && report->code == jobs::kRunFailed;
    raced = !report->signalled && (report->code == kNoGpuLeft || unheard);
    failed = report->signalled || (report->code != 0 && !raced);
    // `gpurota run` has not started the command: the reason is the last line that it printed.
    const bool refused = !report->signalled && report->code == jobs::kRunFailed;
    const std::string why = refused ? table_.supervisor.files().last_line(run) : "";
    if (!why.empty()) how = why;
  }
  // A filler that ends well, but soon, is also started again only after a pause.
  const Duration good = failed ? jobs::Supervision::kGoodRun : filler::Rules{}.good_stay;
  const bool brief = now - table_.spots[gpu].since < good;
  if (!brief) entry.failures = 0;
  if (failed || (brief && !raced)) entry.retry_at = now + jobs::back_off(++entry.failures);
  entry.problem = failed ? how : "";
  if (failed) entry.failed_at = now;
  // The owner is told which command was not found.
  const bool no_command =
      report && !report->signalled && (report->code == 126 || report->code == 127);
  const std::string said = no_command ? table_.supervisor.files().last_line(run) : "";
  if (!said.empty()) entry.problem += ": " + said;
  table_.record(
      proto::EventType::kFillerEnded, entry, gpu,
      fmt::format("has ended on {} by itself: {}", table_.gpu_name(gpu), display_text(how, 200)));
}

// Clears the spot if the filler is off the GPU, with neither a run nor a lease there.
void Fillers::settle_spot(const GpuUuid& gpu) {
  FillerSpot& spot = table_.spots[gpu];
  if (!spot.filler || table_.supervisor.is_on(spot.run) || spot.lease) return;
  const std::uint64_t id = *spot.filler;
  const bool was_out = spot.moved_out || spot.eviction;
  spot.turns.on_gone(table_.parts.loop.now(), spot.turns.state() == filler::State::kLeaving);
  spot.filler.reset();
  spot.kill_timer.reset();
  spot.check_timer.reset();
  spot.eviction.reset();
  spot.moved_out = spot.told_to_end = false;
  table_.parts.samples.poll_processes(gpu, Duration(0));
  const auto it = table_.entries.find(id);
  if (it != table_.entries.end() && (was_out || it->second.removed))
    table_.supervisor.settle(it->second);
}

Result<void> Fillers::store(std::uint64_t id) {
  const FillerEntry& entry = table_.entries.at(id);
  if (!entry.removed || table_.is_on(entry)) return table_.save(entry);
  std::vector<std::uint64_t> runs;
  for (std::size_t i = 0; i < entry.places.size(); ++i) runs.push_back(table_.run_at(entry, i));
  GPUROTA_TRY(table_.supervisor.remove(entry, runs));
  table_.entries.erase(id);
  return {};
}

void Fillers::yield(const GpuUuid& gpu, const std::string& reason) {
  FillerSpot& spot = table_.spots[gpu];
  if (spot.eviction || spot.moved_out) return leave(gpu, reason);
  const filler::WayOut way = table_.way_out_of(gpu);
  if (way.how == filler::OnYield::kStop || !table_.swap_lease_of(spot)) {
    return leave(gpu, reason + (way.because.empty() ? "" : ", and " + way.because));
  }
  table_.record(proto::EventType::kFillerYielded, table_.entries.at(*spot.filler), gpu,
                fmt::format("is moved from {} to host memory: {}", table_.gpu_name(gpu), reason));
  moves_.evict(gpu);
}

void Fillers::move_out(LeaseId lease, const std::string& why) {
  for (auto& [gpu, spot] : table_.spots) {
    if (spot.lease != lease || spot.told_to_end) continue;
    if (spot.eviction || spot.moved_out) return;
    filler::Sight wanted;
    wanted.wanted = true;
    if (spot.turns.observe(wanted, table_.parts.loop.now())) return yield(gpu, why);
  }
  table_.parts.leases.end(lease, EndCause::kReleased, why);
}

void Fillers::start_one(const GpuUuid& gpu) {
  const TimePoint now = table_.parts.loop.now();
  FillerSpot& spot = table_.spots[gpu];
  FillerEntry* const next = choice_.next_for(gpu);
  if (next == nullptr) return;
  FillerEntry& entry = *next;
  const Duration idle = spot.turns.idle_for(now);
  if (auto launched = launch(entry, gpu); !launched) {
    entry.problem = launched.error().message;
    entry.failed_at = now;
    entry.retry_at = now + jobs::back_off(++entry.failures);
    log::warn("a filler cannot be started",
              {{"name", entry.spec.name}, {"error", launched.error().message}});
    return;
  }
  spot.turns.on_started(now);
  table_.parts.samples.poll_processes(gpu, filler::kSampleEvery);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(idle).count();
  table_.record(
      proto::EventType::kFillerStarted, entry, gpu,
      fmt::format("starts on {}: nobody has used it for {} s", table_.gpu_name(gpu), seconds));
}

Result<void> Fillers::check_new(uid_t uid, const jobs::JobSpec& spec) const {
  GPUROTA_TRY(table_.supervisor.check_owner(uid));
  GPUROTA_TRY(jobs::check_spec(spec));
  std::size_t count = 0;
  for (const auto& [id, entry] : table_.entries) {
    if (entry.uid != uid) continue;
    ++count;
    if (entry.spec.name != spec.name) continue;
    return fail(Code::kInvalid,
                entry.removed
                    ? fmt::format("{} is just being removed: try again", spec.name)
                    : fmt::format("there is a filler {0} already: 'gpurota filler remove {0}' "
                                  "removes it",
                                  spec.name));
  }
  if (count >= kMostFillers) {
    return fail(
        Code::kLimit,
        fmt::format("you have {} fillers already, which is the most a user can have", count));
  }
  return check_log(uid);
}

Result<void> Fillers::check_log(uid_t uid) const {
  return table_.supervisor.check_logs(uid, 0, jobs::kLogBound.count());
}

Result<const FillerEntry*> Fillers::add(uid_t uid, jobs::JobSpec spec, FillerWishes wishes) {
  GPUROTA_TRY(check_new(uid, spec));
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t id, table_.supervisor.next_id());
  FillerEntry entry;
  entry.id = id;
  entry.uid = uid;
  entry.user = table_.parts.processes.user_name(uid);
  entry.spec = std::move(spec);
  entry.wishes = std::move(wishes);
  GPUROTA_TRY(table_.save(entry));
  const auto [it, added] = table_.entries.emplace(id, std::move(entry));
  table_.count_logs(it->second);
  log::info("filler added", {{"name", it->second.spec.name}, {"uid", uid}});
  for (const GpuEntry& gpu : table_.parts.gpus.entries())
    table_.parts.samples.sample_soon(gpu.info.uuid);
  return &it->second;
}

Result<void> Fillers::control(std::uint64_t id, What what, const std::string& by) {
  FillerEntry& entry = table_.entries.at(id);
  const bool leaves = what != What::kResume;
  const bool removed = what == What::kRemove;
  if (removed) {
    entry.removed = true;
  } else {
    // Pausing a paused filler changes nothing, not even the record of who has paused it.
    if (!leaves || !entry.paused) entry.paused_by = leaves ? by : "";
    entry.paused = leaves;
  }
  if (what == What::kResume) {
    entry.failures = 0;
    entry.problem.clear();
    entry.retry_at.reset();
  }
  const std::string name = entry.spec.name;
  const std::string reason = control_text(entry, what, by);
  // A filler that is removed, and was on no GPU, is dropped by this call.
  table_.supervisor.settle(entry);
  for (auto& [gpu, spot] : table_.spots) {
    if (spot.filler != id) continue;
    if (!leaves) {
      if (spot.moved_out) spot.stop_stay(table_.parts.loop.now());
      continue;
    }
    const auto why = removed ? filler::Why::kRemoved : filler::Why::kPaused;
    // A paused filler that keeps others off the GPU counts as being there.
    if (spot.moved_out && !spot.stays_from) spot.stays_from = table_.parts.loop.now();
    if (spot.turns.dismiss(why)) {
      yield(gpu, reason);
    } else if (removed && (spot.moved_out || spot.eviction)) {
      leave(gpu, reason);
    }
  }
  for (const GpuEntry& gpu : table_.parts.gpus.entries())
    table_.parts.samples.sample_soon(gpu.info.uuid);
  return table_.supervisor.check_stored(id, name);
}

std::vector<Fillers::Log> Fillers::logs(std::uint64_t id) const {
  const FillerEntry& entry = table_.entries.at(id);
  std::vector<Log> logs;
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    logs.push_back({table_.gpu_name(entry.places[i]),
                    table_.supervisor.files().log_folder(table_.run_at(entry, i))});
  }
  return logs;
}

}  // namespace gpurota::daemon
