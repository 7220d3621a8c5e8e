#include "daemon/supervised/fillers.h"

#include "base/log.h"
#include "base/text.h"
#include "jobs/supervision.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

namespace gpurota::daemon {
namespace {

// One that was on for so long was no false start: failures are counted anew.
constexpr Duration kGoodRun = std::chrono::minutes(10);
// What the keeper and its `gpurota run` need beside the grace of the program itself.
constexpr Duration kKeeperGrace = std::chrono::seconds(2);

std::string reason_of(filler::Why why) {
  switch (why) {
    case filler::Why::kForeign:
      return "a process without a lease is on it";
    case filler::Why::kLeased:
      return "there is a lease on it";
    case filler::Why::kOutOfService:
      return "it is out of service";
    case filler::Why::kPaused:
      return "its owner paused it";
    case filler::Why::kRemoved:
      return "its owner removed it";
    case filler::Why::kStayOver:
      return "its stay is over, and another filler waits";
    case filler::Why::kWanted:
    case filler::Why::kLoad:
    case filler::Why::kNobody:
      break;
  }
  return "somebody needs it";
}

}  // namespace

bool FillerWishes::may_use(const GpuUuid& gpu) const {
  return gpus.empty() || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

Fillers::Fillers(Parts parts)
    : parts_(std::move(parts)),
      launcher_(parts_.directory, parts_.keeper, parts_.systemd_run, "filler") {
  parts_.turns.add_listener(*this);
}

WallTime Fillers::wall_time(TimePoint when) const {
  return parts_.wall_clock() +
         std::chrono::duration_cast<std::chrono::milliseconds>(when - parts_.loop.now());
}

std::string Fillers::gpu_name(const GpuUuid& gpu) const {
  return parts_.gpus.find(gpu) ? "GPU " + parts_.gpus.name_of(gpu) : "a GPU";
}

void Fillers::record(proto::EventType type, const FillerEntry& entry, const GpuUuid& gpu,
                     const std::string& what) {
  const std::string user = display_text(entry.user, 32);
  Recorder::Event event;
  event.type = type;
  event.gpu = gpu;
  event.uid = entry.uid;
  const auto spot = spots_.find(gpu);
  if (spot != spots_.end()) event.lease = spot->second.lease;
  event.message = fmt::format("a filler of {} {}", user, what);
  event.detail = fmt::format("{}: {}", display_text(entry.spec.name, 64),
                             display_command(entry.spec.command, 200));
  log::info("filler", {{"what", event.message}, {"name", entry.spec.name}, {"uid", entry.uid}});
  parts_.recorder.record(std::move(event));
}

filler::Rules Fillers::rules_for(const GpuUuid& gpu) const {
  filler::Rules rules;
  rules.load_percent = parts_.config.filler.load_percent;
  std::optional<Duration> least;
  for (const auto& [id, entry] : entries_) {
    if (entry.removed || entry.paused || !entry.wishes.may_use(gpu)) continue;
    if (!least || entry.wishes.idle_after < *least) least = entry.wishes.idle_after;
  }
  if (least) rules.idle_after = *least;
  return rules;
}

bool Fillers::is_of_interest(const GpuUuid& gpu) const {
  const auto spot = spots_.find(gpu);
  if (spot != spots_.end() && spot->second.filler) return true;
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
    return !each.second.paused && !each.second.removed && each.second.wishes.may_use(gpu);
  });
}

std::optional<Duration> Fillers::grace_of(const LeaseEntry& entry) const {
  if (entry.lease.kind != LeaseKind::kFiller) return std::nullopt;
  const Duration usual = FillerWishes().grace;
  if (entry.lease.gpus.empty()) return usual;
  const auto spot = spots_.find(entry.lease.gpus.front().uuid);
  if (spot == spots_.end() || !spot->second.filler) return usual;
  const auto it = entries_.find(*spot->second.filler);
  return it == entries_.end() ? usual : Duration(it->second.wishes.grace);
}

filler::Sight Fillers::sight_of(const GpuUuid& gpu, bool foreign) const {
  filler::Sight sight;
  const GpuEntry* const entry = parts_.gpus.find(gpu);
  sight.in_service = entry && entry->sample.error.empty() && !entry->info.mig_enabled &&
                     !parts_.states.of(gpu).draining;
  sight.foreign = foreign;
  sight.load_percent = entry ? entry->sample.load_percent.value_or(0) : 0;
  const auto spot = spots_.find(gpu);
  for (const auto& [id, lease] : parts_.leases.entries()) {
    const bool own = spot != spots_.end() && spot->second.lease == id;
    if (!own && lease.lease.find_gpu(gpu)) sight.leased = true;
  }
  return sight;
}

void Fillers::on_look(const GpuUuid& gpu, bool foreign, const std::map<LeaseId, Bytes>& used) {
  if (foreign) {
    // Those that somebody started with `gpurota run --filler`.
    std::vector<LeaseId> others;
    for (const auto& [id, lease] : parts_.leases.entries()) {
      const auto spot = spots_.find(gpu);
      const bool ours = spot != spots_.end() && spot->second.lease == id;
      if (lease.lease.kind == LeaseKind::kFiller && lease.lease.find_gpu(gpu) && !ours) {
        others.push_back(id);
      }
    }
    for (const LeaseId id : others) {
      parts_.leases.end(id, EndCause::kReleased, reason_of(filler::Why::kForeign));
    }
  }
  if (!is_of_interest(gpu)) return;
  FillerSpot& spot = spots_[gpu];
  const auto of_lease = spot.lease ? used.find(*spot.lease) : used.end();
  spot.counted = of_lease == used.end() ? Bytes() : of_lease->second;
  evaluate(gpu, sight_of(gpu, foreign));
  step_eviction(gpu);
}

void Fillers::on_failed_look(const GpuUuid& gpu) {
  if (is_of_interest(gpu)) evaluate(gpu, sight_of(gpu, false));
}

void Fillers::on_glimpse(const GpuUuid& gpu, const std::vector<pid_t>& pids) {
  const GpuEntry* const entry = parts_.gpus.find(gpu);
  if (!entry) return;
  const auto& known = entry->sample.processes;
  const bool news = std::any_of(pids.begin(), pids.end(), [&](pid_t pid) {
    return std::none_of(known.begin(), known.end(),
                        [&](const GpuProcess& process) { return process.pid == pid; });
  });
  if (news) parts_.samples.look_soon(gpu);
}

void Fillers::evaluate(const GpuUuid& gpu, const filler::Sight& sight) {
  FillerSpot& spot = spots_[gpu];
  spot.turns.set_rules(rules_for(gpu));
  if (spot.turns.look(sight, parts_.loop.now())) {
    yield(gpu, reason_of(spot.turns.why()));
  } else if (spot.moved_out && parts_.states.of(gpu).draining) {
    leave(gpu, reason_of(filler::Why::kOutOfService));
  } else if (sight.in_service && stay_is_over(gpu)) {
    if (spot.moved_out ? spot.turns.state() == filler::State::kFree
                       : spot.turns.dismiss(filler::Why::kStayOver)) {
      leave(gpu, reason_of(filler::Why::kStayOver));
    }
  } else if (spot.turns.state() == filler::State::kFree) {
    spot.filler ? bring_back(gpu) : start_one(gpu);
  }
}

std::uint64_t Fillers::files_of(const FillerEntry& entry, std::size_t place) {
  return entry.id * kMostPlaces + place;
}

Result<std::uint64_t> Fillers::number_of(FillerEntry& entry, const GpuUuid& gpu) {
  const auto at = std::find(entry.places.begin(), entry.places.end(), gpu);
  const auto place = static_cast<std::size_t>(at - entry.places.begin());
  if (at == entry.places.end()) {
    if (place >= kMostPlaces) return fail(Code::kLimit, "it has been on too many GPUs");
    // Its first is counted since it was added.
    if (place > 0) GPUROTA_TRY(check_log(entry.uid));
    entry.places.push_back(gpu);
    if (auto saved = save(entry); !saved) {
      // Else the next daemon would not find what is started there.
      entry.places.pop_back();
      return tl::unexpected(saved.error());
    }
    count_logs(entry);
  }
  return files_of(entry, place);
}

Result<void> Fillers::launch(FillerEntry& entry, const GpuUuid& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t number, number_of(entry, gpu));
  jobs::JobSpec spec = entry.spec;
  spec.options = {"--filler", "--nonblock", "--gpu-ids", gpu.value};
  if (entry.wishes.on_yield == filler::OnYield::kEvict) spec.options.emplace_back("--swap");
  if (entry.wishes.memory) {
    const SizeSpec& memory = *entry.wishes.memory;
    spec.options.emplace_back("--memory");
    spec.options.push_back(memory.percent != 0 ? fmt::format("{}%", memory.percent)
                                               : std::to_string(memory.bytes.count()));
  }
  GPUROTA_ASSIGN_OR_RETURN(
      const pid_t pid,
      launcher_.start(
          number, {entry.uid, entry.user, parts_.gpurota, parts_.runtime_dir, std::move(spec)},
          [&](pid_t keeper) { cgroups_.make(keeper, fmt::format("filler-{}", number)); }));
  FillerSpot& spot = spots_[gpu];
  spot.filler = entry.id;
  spot.since = entry.last_start = parts_.loop.now();
  spot.stayed = Duration(0);
  spot.may_lack_lease = false;
  spot.stays_from = spot.since;
  auto keeper = track_number(parts_.processes, pid, [this, gpu] { on_keeper_death(gpu); });
  if (keeper) {
    spot.keeper = std::move(*keeper);
  } else {
    // As a job's keeper that cannot be watched.
    log::warn("a filler's keeper cannot be watched, ending it",
              {{"name", entry.spec.name}, {"error", keeper.error().message}});
    (void)::kill(pid, SIGKILL);
    parts_.loop.post([this, gpu, pid] {
      launcher_.collect(pid);
      on_keeper_death(gpu);
    });
  }
  return {};
}

void Fillers::leave(const GpuUuid& gpu, const std::string& reason) {
  FillerSpot& spot = spots_[gpu];
  const auto it = spot.filler ? entries_.find(*spot.filler) : entries_.end();
  if (it == entries_.end() || spot.told_to_end) return;
  spot.told_to_end = true;
  // What was on for a while and had to be ended is a good one, however it began.
  if (parts_.loop.now() - spot.since >= filler::Rules{}.good_stay) {
    it->second.failures = 0;
    it->second.problem.clear();
  }
  spot.eviction.reset();
  spot.look_timer.reset();
  record(proto::EventType::kFillerYielded, it->second, gpu,
         fmt::format("leaves {}: {}", gpu_name(gpu), reason));
  if (spot.lease) {
    parts_.leases.end(*spot.lease, EndCause::kReleased, reason);
  } else if (spot.keeper) {
    (void)spot.keeper->handle->send_signal(SIGTERM);
  }
  auto timer = parts_.loop.add_timer(parts_.loop.now() + it->second.wishes.grace + kKeeperGrace,
                                     ports::Urgency::kSafety, [this, gpu] {
                                       FillerSpot& late = spots_[gpu];
                                       const auto this_timer = std::move(late.kill_timer);
                                       if (late.keeper) {
                                         (void)late.keeper->handle->send_signal(SIGQUIT);
                                       }
                                     });
  if (timer) spot.kill_timer = std::move(*timer);
}

bool Fillers::is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const {
  if (!spot.keeper || !lease.holder) return false;
  const auto info = parts_.processes.read_info(lease.holder->pid());
  return info && info->parent == spot.keeper->pid();
}

void Fillers::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (entry.lease.kind != LeaseKind::kFiller || entry.lease.gpus.empty()) return;
  const GpuUuid gpu = entry.lease.gpus.front().uuid;
  const LeaseId id = entry.lease.id;
  const auto it = spots_.find(gpu);
  const bool away = gone || (it != spots_.end() && it->second.moved_out);
  parts_.samples.glimpse(gpu, away ? Duration(0) : filler::kSampleEvery);
  if (it == spots_.end()) return;
  FillerSpot& spot = it->second;
  if (!spot.lease && !gone && is_kept_by(entry, spot)) {
    spot.lease = id;
    spot.may_lack_lease = false;
    // It had to leave while it was still starting.
    if (spot.turns.state() == filler::State::kLeaving) {
      parts_.loop.post([this, id, why = spot.turns.why()] {
        parts_.leases.end(id, EndCause::kReleased, reason_of(why));
      });
    }
  }
  if (spot.lease != id) return;
  if (gone) {
    spot.lease.reset();
    return settle_spot(gpu);
  }
  // The queue ended it, or somebody who may.
  const bool asked_to = entry.cause == EndCause::kReleased || entry.cause == EndCause::kExpired;
  if (!asked_to || spot.told_to_end) return;
  if (spot.turns.state() == filler::State::kOn) {
    filler::Sight sight;
    sight.wanted = true;
    (void)spot.turns.look(sight, parts_.loop.now());
  } else if (!spot.eviction && !spot.moved_out) {
    return;
  }
  const auto way = way_out_of(gpu);
  leave(gpu, entry.reason + (way.because.empty() ? "" : ", and " + way.because));
}

// The lock tells who keeps it. Nobody: nothing.
Result<std::optional<TrackedProcess>> Fillers::find_keeper(std::uint64_t files,
                                                           const GpuUuid& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const auto holder, launcher_.find_holder(files));
  if (!holder) return std::nullopt;
  GPUROTA_ASSIGN_OR_RETURN(
      auto keeper,
      unless_gone(track_number(parts_.processes, *holder, [this, gpu] { on_keeper_death(gpu); })));
  if (!keeper || !launcher_.is_held_by(files, *holder)) return std::nullopt;
  return keeper;
}

Result<bool> Fillers::hand_over(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  const auto it = spot.filler ? entries_.find(*spot.filler) : entries_.end();
  if (it == entries_.end()) return false;
  const auto number = number_of(it->second, gpu);
  if (!number) return false;
  GPUROTA_ASSIGN_OR_RETURN(auto keeper, find_keeper(*number, gpu));
  if (!keeper) return false;
  spot.keeper = std::move(*keeper);
  // It may have its lease already, or may have had to leave.
  for (const auto& [id, lease] : parts_.leases.entries()) on_lease_change(lease, false);
  if (spot.turns.state() == filler::State::kLeaving && !spot.lease) {
    (void)spot.keeper->handle->send_signal(SIGTERM);
  }
  return true;
}

void Fillers::on_keeper_death(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  if (spot.keeper) {
    launcher_.collect(spot.keeper->pid());
    cgroups_.on_end(spot.keeper->pid());
  }
  spot.keeper.reset();
  const auto handed_over = hand_over(gpu);
  // It may live, and nobody can look at it now.
  if (!handed_over) return look_again(gpu);
  if (*handed_over) return;
  const auto it = spot.filler ? entries_.find(*spot.filler) : entries_.end();
  const bool was_on = spot.turns.state() == filler::State::kOn || spot.eviction || spot.moved_out;
  if (it != entries_.end() && was_on && !spot.told_to_end) {
    if (const auto number = number_of(it->second, gpu)) ended_by_itself(it->second, gpu, *number);
  }
  settle_spot(gpu);
}

void Fillers::look_again(const GpuUuid& gpu) {
  auto timer = parts_.loop.add_timer(parts_.loop.now() + kLookAgain, ports::Urgency::kHousekeeping,
                                     [this, gpu] { on_keeper_death(gpu); });
  if (timer) spots_[gpu].look_again = std::move(*timer);
}

void Fillers::ended_by_itself(FillerEntry& entry, const GpuUuid& gpu, std::uint64_t number) {
  constexpr int kNoGpuLeft = 75;  // `gpurota run --nonblock`: somebody was quicker
  const TimePoint now = parts_.loop.now();
  const auto report = launcher_.read_report(number);
  std::string how = "its keeper left no report";
  bool failed = true, raced = false;
  if (report && !report->cannot_start.empty()) {
    how = report->cannot_start;
  } else if (report) {
    how = fmt::format("{} {}", report->signalled ? "killed by signal" : "exited", report->code);
    // It was still asking an earlier daemon, which has gone.
    const bool unheard = spots_[gpu].may_lack_lease && report->code == jobs::kRunFailed;
    raced = !report->signalled && (report->code == kNoGpuLeft || unheard);
    failed = report->signalled || (report->code != 0 && !raced);
    // `gpurota run` has not come to the command: what it said is why.
    const bool refused = !report->signalled && report->code == jobs::kRunFailed;
    if (const std::string why = launcher_.last_line(number); refused && !why.empty()) how = why;
  }
  // One that ends well, but soon, is not started all the time either.
  const Duration good = failed ? kGoodRun : filler::Rules{}.good_stay;
  const bool brief = now - spots_[gpu].since < good;
  if (!brief) entry.failures = 0;
  if (failed || (brief && !raced)) entry.retry_at = now + jobs::back_off(++entry.failures);
  entry.problem = failed ? how : "";
  if (failed) entry.failed_at = now;
  // Its owner is told what was not there.
  const bool no_command =
      report && !report->signalled && (report->code == 126 || report->code == 127);
  if (const std::string why = launcher_.last_line(number); no_command && !why.empty()) {
    entry.problem += ": " + why;
  }
  record(proto::EventType::kFillerEnded, entry, gpu,
         fmt::format("has ended on {} by itself: {}", gpu_name(gpu), display_text(how, 200)));
}

// Off the GPU: no keeper, no lease.
void Fillers::settle_spot(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  if (!spot.filler || spot.keeper || spot.lease) return;
  const std::uint64_t id = *spot.filler;
  const bool was_out = spot.moved_out || spot.eviction;
  spot.turns.on_gone(parts_.loop.now(), spot.turns.state() == filler::State::kLeaving);
  spot.filler.reset();
  spot.kill_timer.reset();
  spot.look_timer.reset();
  spot.eviction.reset();
  spot.moved_out = spot.told_to_end = false;
  parts_.samples.glimpse(gpu, Duration(0));
  const auto it = entries_.find(id);
  if (was_out && it != entries_.end()) save_or_say(it->second);
  (void)drop_if_removed(id);
}

Result<void> Fillers::drop_if_removed(std::uint64_t id) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second.removed) return {};
  for (const auto& [gpu, spot] : spots_) {
    if (spot.filler == id) return {};
  }
  // One that the store still has would come back with the next daemon.
  if (auto removed = unstored_.note(id, parts_.store->remove_filler(id)); !removed) {
    log::error("cannot remove a filler from the store", {{"error", removed.error().message}});
    return removed;
  }
  for (std::size_t i = 0; i < it->second.places.size(); ++i) {
    if (auto gone = launcher_.forget(files_of(it->second, i)); !gone) {
      log::warn("cannot remove what a filler left", {{"error", gone.error().message}});
    }
  }
  log::info("filler removed", {{"name", it->second.spec.name}, {"uid", it->second.uid}});
  entries_.erase(it);
  return {};
}

}  // namespace gpurota::daemon
