#include "daemon/supervised/fillers.h"

#include "base/log.h"
#include "base/text.h"
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

std::optional<SizeSpec> FillerWishes::memory_of(const lease::Available& available) const {
  if (!of_free) return memory;
  const Bytes free = on_yield == filler::OnYield::kEvict ? available.turns : available.slice;
  // Of nothing it asks for the least there is, and is told why it cannot have that.
  return SizeSpec{std::max(SizeSpec{Bytes(), *of_free}.of(free), kMiB), 0};
}

bool FillerWishes::may_use(const GpuUuid& gpu) const {
  return gpus.empty() || std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

Fillers::Fillers(Parts parts)
    : parts_(std::move(parts)),
      supervisor_(parts_.supervisor, ports::ProgramKind::kFiller, parts_.directory, *this) {
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

std::uint64_t Fillers::run_at(const FillerEntry& entry, std::size_t place) {
  return entry.id * kMostPlaces + place;
}

const GpuUuid& Fillers::gpu_of(std::uint64_t run) const {
  return entries_.at(run / kMostPlaces).places.at(run % kMostPlaces);
}

Result<std::uint64_t> Fillers::run_on(FillerEntry& entry, const GpuUuid& gpu) {
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
  return run_at(entry, place);
}

Result<void> Fillers::launch(FillerEntry& entry, const GpuUuid& gpu) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t run, run_on(entry, gpu));
  jobs::JobSpec spec = entry.spec;
  spec.options = {"--filler", "--nonblock", "--gpu-ids", gpu.value};
  if (entry.wishes.on_yield == filler::OnYield::kEvict) spec.options.emplace_back("--swap");
  if (const auto memory = entry.wishes.memory_of(parts_.availability.available_on(gpu))) {
    spec.options.emplace_back("--memory");
    spec.options.push_back(memory->percent != 0 ? fmt::format("{}%", memory->percent)
                                                : std::to_string(memory->bytes.count()));
  }
  GPUROTA_TRY(supervisor_.launch(run, entry, spec));
  FillerSpot& spot = spots_[gpu];
  spot.filler = entry.id;
  spot.run = run;
  spot.since = entry.last_start = parts_.loop.now();
  spot.stayed = Duration(0);
  spot.may_lack_lease = false;
  spot.stays_from = spot.since;
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
  } else {
    supervisor_.end(spot.run);
  }
  const Duration grace = it->second.wishes.grace + Supervisor::kKeeperGrace;
  auto timer =
      parts_.loop.add_timer(parts_.loop.now() + grace, ports::Urgency::kSafety, [this, gpu] {
        FillerSpot& late = spots_[gpu];
        const auto this_timer = std::move(late.kill_timer);
        supervisor_.kill(late.run);
      });
  if (timer) spot.kill_timer = std::move(*timer);
}

bool Fillers::is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const {
  if (!spot.filler || !lease.holder) return false;
  const auto info = parts_.processes.read_info(lease.holder->pid());
  return info && supervisor_.is_kept_by(spot.run, info->parent);
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

void Fillers::on_handed_over(std::uint64_t run) {
  const FillerSpot& spot = spots_[gpu_of(run)];
  // It may have its lease already, or may have had to leave.
  for (const auto& [id, lease] : parts_.leases.entries()) on_lease_change(lease, false);
  if (spot.turns.state() == filler::State::kLeaving && !spot.lease) supervisor_.end(run);
}

void Fillers::on_over(std::uint64_t run) {
  const GpuUuid gpu = gpu_of(run);
  const FillerSpot& spot = spots_[gpu];
  const bool was_on = spot.turns.state() == filler::State::kOn || spot.eviction || spot.moved_out;
  if (was_on && spot.filler && !spot.told_to_end) ended_by_itself(entries_.at(*spot.filler), gpu);
  settle_spot(gpu);
}

void Fillers::ended_by_itself(FillerEntry& entry, const GpuUuid& gpu) {
  constexpr int kNoGpuLeft = 75;  // `gpurota run --nonblock`: somebody was quicker
  const TimePoint now = parts_.loop.now();
  const std::uint64_t run = spots_[gpu].run;
  const auto report = supervisor_.files().read_report(run);
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
    const std::string why = refused ? supervisor_.files().last_line(run) : "";
    if (!why.empty()) how = why;
  }
  // One that ends well, but soon, is not started all the time either.
  const Duration good = failed ? jobs::Supervision::kGoodRun : filler::Rules{}.good_stay;
  const bool brief = now - spots_[gpu].since < good;
  if (!brief) entry.failures = 0;
  if (failed || (brief && !raced)) entry.retry_at = now + jobs::back_off(++entry.failures);
  entry.problem = failed ? how : "";
  if (failed) entry.failed_at = now;
  // Its owner is told what was not there.
  const bool no_command =
      report && !report->signalled && (report->code == 126 || report->code == 127);
  const std::string said = no_command ? supervisor_.files().last_line(run) : "";
  if (!said.empty()) entry.problem += ": " + said;
  record(proto::EventType::kFillerEnded, entry, gpu,
         fmt::format("has ended on {} by itself: {}", gpu_name(gpu), display_text(how, 200)));
}

// Off the GPU: no run, no lease.
void Fillers::settle_spot(const GpuUuid& gpu) {
  FillerSpot& spot = spots_[gpu];
  if (!spot.filler || supervisor_.is_on(spot.run) || spot.lease) return;
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
  if (it != entries_.end() && (was_out || it->second.removed)) supervisor_.settle(it->second);
}

bool Fillers::is_on(const FillerEntry& entry) const {
  for (std::size_t i = 0; i < entry.places.size(); ++i) {
    const auto spot = spots_.find(entry.places[i]);
    if (supervisor_.is_on(run_at(entry, i))) return true;
    if (spot != spots_.end() && spot->second.filler == entry.id) return true;
  }
  return false;
}

Result<void> Fillers::store(std::uint64_t id) {
  const FillerEntry& entry = entries_.at(id);
  if (!entry.removed || is_on(entry)) return save(entry);
  std::vector<std::uint64_t> runs;
  for (std::size_t i = 0; i < entry.places.size(); ++i) runs.push_back(run_at(entry, i));
  GPUROTA_TRY(supervisor_.remove(entry, runs));
  entries_.erase(id);
  return {};
}

}  // namespace gpurota::daemon
