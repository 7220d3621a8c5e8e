#include "daemon/tenants/turn_keeper.h"

#include "base/log.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/tenants/swap_tenants.h"
#include "ipc/peer.h"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

// The same trouble is reported at most once in this time unless it is urgent, because a move that
// fails is tried again every second.
constexpr Duration kSayAgain = std::chrono::minutes(1);

Bytes machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || size <= 0) return {};
  return Bytes(static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size));
}

sched::TurnsMode mode_of(config::Turns::Mode mode) {
  switch (mode) {
    case config::Turns::Mode::kAuto:
      return sched::TurnsMode::kAuto;
    case config::Turns::Mode::kOn:
      return sched::TurnsMode::kOn;
    case config::Turns::Mode::kOff:
      return sched::TurnsMode::kOff;
  }
  return sched::TurnsMode::kAuto;
}

// A GPU that uses the machine's memory has no more room when its leases are parked.
bool is_parked(const Lease& lease, const GpuTable& gpus) {
  return is_off(lease.park) &&
         std::none_of(lease.gpus.begin(), lease.gpus.end(), [&](const LeaseGpu& share) {
           const GpuEntry* const gpu = gpus.find(share.uuid);
           return gpu && gpu->info.unified;
         });
}

}  // namespace

Bytes TurnKeeper::host_budget() const {
  return parts_.config.turns.host_budget.of(machine_memory());
}

Bytes TurnKeeper::pinned_budget() const { return parts_.config.turns.pinned.of(host_budget()); }

sched::Settings TurnKeeper::settings() const {
  const config::Turns& site = parts_.config.turns;
  sched::Settings settings;
  settings.host_budget = host_budget();
  settings.moving_share = site.moving_percent / 100.0;
  settings.priority_share = site.priority_percent / 100.0;
  settings.idle_release = site.idle_release;
  settings.yield_deadline = site.yield_deadline;
  settings.stop_at_deadline = site.stop_at_deadline;
  settings.stopped_deadline = site.stopped_deadline;
  settings.longest_drain = site.longest_drain;
  return settings;
}

sched::LeaseTerms TurnKeeper::terms_of(const Lease& lease) const {
  sched::LeaseTerms terms;
  terms.id = lease.id;
  using Policy = config::SoftLimit::Policy;
  const Policy policy = parts_.config.soft_limit.policy;
  const bool gives_way = policy == Policy::kEvict || policy == Policy::kStop;
  for (const LeaseGpu& gpu : lease.gpus) {
    terms.gpus.push_back({gpu.uuid, gpu.limit.value_or(Bytes())});
    if (gives_way) terms.gpus.back().soft_limit = gpu.soft_limit;
    terms.gpus.back().oversize = gpu.oversize;
  }
  terms.priority = lease.priority;
  if (lease.quantum) terms.quantum = *lease.quantum;
  const int weight = parts_.users.limits_of(lease.uid).weight.value_or(100);
  terms.weight = static_cast<unsigned>(std::max(weight, 1));
  return terms;
}

Bytes TurnKeeper::slices(const GpuUuid& gpu) const {
  Bytes sum;
  for (const auto& [id, entry] : parts_.tables.leases) {
    const LeaseGpu* share = entry.lease.find_gpu(gpu);
    // A slice that waits for room does not shrink turns before there is room.
    if (share && !share->swap && !is_parked(entry.lease, parts_.gpus))
      sum += share->limit.value_or(Bytes());
  }
  return sum;
}

sched::GpuSettings TurnKeeper::for_turns(const GpuInfo& gpu, const GpuSettings& settings) const {
  sched::GpuSettings turns;
  turns.uuid = gpu.uuid;
  turns.capacity = std::min(settings.turn_capacity, settings.capacity - slices(gpu.uuid));
  turns.mode = mode_of(settings.mode);
  if (settings.quantum) turns.quantum = *settings.quantum;
  return turns;
}

void TurnKeeper::refresh() {
  turns_.set(settings());
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.swap()) turns_.update_lease(terms_of(entry.lease));
  }
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    const GpuUuid& uuid = gpu.info.uuid;
    sched::GpuSettings wanted =
        for_turns(gpu.info, settings_of(gpu.info, parts_.config, parts_.states.of(uuid)));
    const auto known = applied_.find(uuid);
    if (known != applied_.end() && known->second == wanted) continue;
    if (const auto set = turns_.set_gpu(wanted); !set) {
      // The setting is applied anyway, for later leases: slices have the memory already, or the
      // site's configuration demands the setting. But turns that are still needed are not switched
      // off.
      if (wanted.mode == sched::TurnsMode::kOff && known != applied_.end()) {
        wanted.mode = known->second.mode;
      }
      log::warn("the swap leases on a GPU do not fit its settings",
                {{"gpu", gpu.info.uuid.value},
                 {"index", gpu.info.index},
                 {"error", set.error().message}});
      (void)turns_.set_gpu(wanted, true);
    }
    applied_[uuid] = wanted;
  }
  feed(sched::Tick{});
}

Result<void> TurnKeeper::check(const GpuInfo& gpu, const GpuSettings& settings) const {
  const Bytes promised = slices(gpu.uuid);
  const Bytes needed = need(gpu.uuid, [](LeaseId) { return true; }).most;
  const GpuSettings before = settings_of(gpu, parts_.config, parts_.states.of(gpu.uuid));
  // A setting that does not lower the capacity is not refused here, even if the leases do not fit.
  if (settings.capacity < before.capacity && promised + needed > settings.capacity) {
    return fail(
        Code::kLimit,
        fmt::format("GPU {} cannot be set to {}: {} is promised to slices and {} needed for "
                    "turns; end one of its leases first",
                    gpu.index, to_string(settings.capacity), to_string(promised),
                    to_string(needed)));
  }
  sched::Turns trial = turns_;
  return trial.set_gpu(for_turns(gpu, settings));
}

Result<void> TurnKeeper::check_new(const Lease& lease) const {
  if (!lease.swap()) return {};
  GPUROTA_TRY(check_pinned(lease));
  return turns_.check_lease(terms_of(lease));
}

Bytes TurnKeeper::oversize_of(uid_t uid) const {
  Bytes sum;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (entry.lease.uid == uid) sum += entry.lease.oversize();
  }
  return sum;
}

// The driver pins all of an oversize lease's host memory.
Result<void> TurnKeeper::check_pinned(const Lease& lease) const {
  const Bytes wanted = lease.oversize();
  if (wanted.is_zero()) return {};
  const Bytes user = parts_.users.limits_of(lease.uid).pinned.value_or(UserLimits::kUnlimitedBytes);
  const Bytes left = pinned_budget() - turns_.residency().oversize();
  const Bytes of_user = user - oversize_of(lease.uid);
  if (wanted <= std::min(left, of_user)) return {};
  return fail(
      Code::kLimit,
      fmt::format("{} of pinned host memory is needed, and {} is available now ({}); ask for less",
                  to_string(wanted), to_string(std::min(left, of_user)),
                  of_user < left ? "your limit of 'pinned'" : "[turns] pinned"));
}

void TurnKeeper::restore(TimePoint until) {
  refresh();
  began_ = ipc::ticks_since_boot();
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (!entry.lease.swap()) continue;
    turns_.add_lease(terms_of(entry.lease));
    take(turns_.set_parked(id, is_parked(entry.lease, parts_.gpus), parts_.loop.now()));
    restored_.insert(id);
  }
  if (!restored_.empty()) turns_.hold_until(until);
  schedule();
}

bool TurnKeeper::may_have_known(LeaseId lease, const ports::ProcessId& process) const {
  return restored_.contains(lease) && process.start_ticks <= began_;
}

void TurnKeeper::on_lease_change(const LeaseEntry& entry, bool gone) {
  const Lease& lease = entry.lease;
  if (lease.exclusive()) return;
  if (!lease.swap()) return refresh();
  if (!gone) {
    if (turns_.has_lease(lease.id)) {
      turns_.update_lease(terms_of(lease));
    } else {
      turns_.add_lease(terms_of(lease));
    }
    return take(turns_.set_parked(lease.id, is_parked(lease, parts_.gpus), parts_.loop.now()));
  }
  restored_.erase(lease.id);
  std::erase_if(told_, [&](const auto& told) { return std::get<LeaseId>(told.first) == lease.id; });
  take(turns_.remove_lease(lease.id, parts_.loop.now()));
}

void TurnKeeper::feed(const sched::Event& event) { take(turns_.handle(event, parts_.loop.now())); }

void TurnKeeper::set_aside(LeaseId lease, bool aside) {
  take(turns_.set_aside(lease, aside, parts_.loop.now()));
}

std::optional<LeaseStay> TurnKeeper::stay_of(LeaseId lease) const {
  const LeaseEntry* const entry = parts_.tables.find(lease);
  const bool is_aside = turns_.residency().is_aside(lease);
  if (!entry || !entry->lease.swap() || (!is_aside && !turns_.could_be_aside(lease)))
    return std::nullopt;
  const TimePoint now = parts_.loop.now();
  const auto view = turns_.explain(lease, now);
  // Until the lease's programs have connected to a new daemon, the place of their memory is
  // unknown.
  bool is_out = is_aside && !turns_.on_hold(now) && (!view || view->phase == sched::Phase::kApart);
  Bytes stays;
  for (const LeaseGpu& gpu : entry->lease.gpus) {
    const sched::Holding held = holding(lease, gpu.uuid);
    stays = std::max(stays, held.wired + held.wired_unbacked + held.beside + held.lingering);
    is_out = is_out && (held.resident + held.coming).is_zero();
  }
  return LeaseStay{stays, is_out};
}

Bytes TurnKeeper::Outsiders::all() const {
  Bytes sum = unreserved;
  for (const auto& [pid, bytes] : of_leases) sum += bytes;
  return sum;
}

void TurnKeeper::set_outsiders(const GpuUuid& gpu, Outsiders outsiders) {
  Outsiders& known = outsiders_[gpu];
  if (known == outsiders) return;
  known = std::move(outsiders);
  turns_.set_outsiders(gpu, known.all());
  feed(sched::Tick{});
}

Bytes TurnKeeper::seen_of(pid_t pid, const GpuUuid& gpu) const {
  const auto there = outsiders_.find(gpu);
  if (there == outsiders_.end()) return {};
  const auto held = there->second.of_leases.find(pid);
  return held == there->second.of_leases.end() ? Bytes() : held->second;
}

void TurnKeeper::becomes_tenant(pid_t pid) {
  for (auto& [gpu, outsiders] : outsiders_) {
    if (outsiders.of_leases.erase(pid) != 0) turns_.set_outsiders(gpu, outsiders.all());
  }
}

std::optional<TurnFigures> TurnKeeper::figures_of(LeaseId lease) const {
  const auto turn = turns_.turn_of(lease);
  if (!turn) return std::nullopt;
  TurnFigures figures;
  figures.out = turn->out;
  figures.holds = turn->takes_turns && turn->holds;
  figures.waits = turn->takes_turns && turn->waits;
  return figures;
}

pid_t TurnKeeper::pid_of(TenantId id) const { return tenants_ ? tenants_->pid_of(id) : 0; }

HostPins TurnKeeper::pins_of(LeaseId lease) const {
  return tenants_ ? tenants_->pins_of(lease) : HostPins{};
}

void TurnKeeper::take(const sched::Actions& actions) {
  ++changes_;
  if (tenants_ && !actions.empty()) tenants_->carry_out(actions);
  for (const sched::Action& action : actions) {
    if (const auto* trouble = std::get_if<sched::ReportTrouble>(&action)) report(*trouble);
  }
  schedule();
  if (parts_.on_change) parts_.on_change();
}

void TurnKeeper::schedule() {
  timer_.reset();
  const auto when = turns_.next_deadline();
  if (!when) return;
  timer_ = parts_.loop.add_timer(*when, ports::Urgency::kSchedule, [this] { feed(sched::Tick{}); });
}

std::string TurnKeeper::why_not_moved(TenantId id, const std::string& lease,
                                      const std::string& process) const {
  const SwapTenant* const tenant = tenants_ ? std::as_const(*tenants_).find(id) : nullptr;
  if (tenant && tenant->rdma) {
    return fmt::format(
        "memory of {} does not move: {} has an RDMA device open (InfiniBand, GPUDirect "
        "Storage, "
        "gdrcopy) that may have registered it; a slice or a whole GPU is the right lease for "
        "it",
        lease, process);
  }
  return fmt::format(
      "memory of {} could not be moved; it stays where it was, and the move is tried again", lease);
}

std::string TurnKeeper::describe(const sched::ReportTrouble& trouble, pid_t pid) const {
  std::string lease = to_string(trouble.lease);
  const std::string process = pid > 0 ? fmt::format("process {}", pid) : "a process";
  switch (trouble.trouble) {
    case sched::Trouble::kNotYielding:
      if (trouble.stop) {
        return fmt::format(
            "{} did not give its turn back while others waited, and is ended: its work did not "
            "end, "
            "or its memory did not move, in time",
            lease);
      }
      if (trouble.ends_in) {
        return fmt::format(
            "{} does not give its turn back while others wait: it is ended in {} s unless its work "
            "ends, or its memory moves, before ([turns] longest_drain)",
            lease, std::chrono::ceil<std::chrono::seconds>(*trouble.ends_in).count());
      }
      return fmt::format(
          "{} does not give its turn back: its work did not end, or its memory did not move, "
          "within {} s",
          lease, parts_.config.turns.yield_deadline.count() / 1000);
    case sched::Trouble::kUnreachable:
      return fmt::format("{} holds what others wait for, and {} of it is stopped", lease, process);
    case sched::Trouble::kMoveFailed:
      return why_not_moved(trouble.tenant, lease, process);
    case sched::Trouble::kNoRoom:
      return fmt::format(
          "{} waits: the memory on its GPU that cannot be moved (contexts, programs that take no "
          "turns) has grown, and it no longer fits; it continues when there is less of that "
          "(gpurota ps shows who holds what)",
          lease);
    case sched::Trouble::kOverCapacity:
      return fmt::format(
          "programs hold more on {} than was granted; leases that take turns there have less room "
          "meanwhile (gpurota ps shows who holds what)",
          parts_.gpus.name_of(trouble.gpu));
    case sched::Trouble::kNotThere:
      return fmt::format(
          "{} of {} said to this daemon that it has memory on {}, and the driver does not show it: "
          "it is not counted any more",
          process, lease, parts_.gpus.name_of(trouble.gpu));
    case sched::Trouble::kStillThere:
      return fmt::format(
          "memory that {} of {} said it had moved out of {} is still there; for an hour, nobody "
          "gets room that this user's "
          "programs say they left before the driver confirms it (gpurota ps shows who holds what)",
          process, lease, parts_.gpus.name_of(trouble.gpu));
  }
  return lease;
}

void TurnKeeper::report(const sched::ReportTrouble& trouble) {
  const TimePoint now = parts_.loop.now();
  const auto [told, fresh] = told_.try_emplace({trouble.trouble, trouble.lease, trouble.gpu}, now);
  const bool urgent = trouble.stop || trouble.ends_in;
  if (!fresh && now < told->second + kSayAgain && !urgent) return;
  told->second = now;
  const pid_t pid = pid_of(trouble.tenant);
  const std::string message = describe(trouble, pid);
  const LeaseEntry* const entry = parts_.tables.find(trouble.lease);
  log::warn("turns are in trouble", {{"message", message}});
  Recorder::Event event;
  event.type = proto::EventType::kTurnTrouble;
  event.message = message;
  if (entry) {
    event.lease = trouble.lease;
    event.uid = entry->lease.uid;
    parts_.owners.tell_owner(trouble.lease, message);
  }
  if (!trouble.gpu.value.empty()) event.gpu = trouble.gpu;
  if (pid > 0) event.pids = {pid};
  parts_.recorder.record(std::move(event));
  if (!trouble.stop || !entry) return;
  // The lease ends later, because the caller may be iterating over the leases.
  const char* const why = trouble.trouble == sched::Trouble::kUnreachable
                              ? "others needed its memory, and one of its processes stayed stopped"
                              : "it did not give its turn back in time";
  parts_.loop.post(
      [this, lease = trouble.lease, why] { parts_.leases.end(lease, EndCause::kReleased, why); });
}

// The memory of a lease that waits for room is in no sum of the scheduler, and is added here.
TurnKeeper::Need TurnKeeper::need(const GpuUuid& gpu,
                                  const std::function<bool(LeaseId)>& counts) const {
  const sched::Residency& memory = turns_.residency();
  const auto slot = memory.slot_of(gpu);
  if (!slot) return {};
  Bytes most, of_fillers, of_waiting;
  bool any = false;
  for (const auto& [id, entry] : parts_.tables.leases) {
    if (!entry.lease.swap() || !entry.lease.find_gpu(gpu)) continue;
    const bool is_on = !memory.is_parked(id);
    if (!is_on && (entry.lease.park == ParkState::kParked || !counts(id))) continue;
    const sched::Holding held = memory.of_lease(id, *slot);
    if (!is_on) of_waiting += held.wired + held.wired_unbacked + held.beside;
    if (entry.lease.kind == LeaseKind::kFiller) {
      of_fillers += held.wired + held.wired_unbacked + held.beside;
      continue;
    }
    any = true;
    most = std::max(most, held.movable);
  }
  if (!any) return {};
  // Memory used without a lease is not counted here, because placement counts it separately.
  const auto outsiders = outsiders_.find(gpu);
  const Bytes unreserved = outsiders == outsiders_.end() ? Bytes() : outsiders->second.unreserved;
  const Bytes wired = memory.wired(*slot) - unreserved - of_fillers + of_waiting;
  return {most + wired, wired};
}

sched::Holding TurnKeeper::holding(LeaseId lease, const GpuUuid& gpu) const {
  const auto slot = turns_.residency().slot_of(gpu);
  return slot ? turns_.residency().of_lease(lease, *slot) : sched::Holding();
}

std::pair<Bytes, Bytes> TurnKeeper::charge(LeaseId lease, const GpuUuid& gpu) const {
  const sched::Holding held = holding(lease, gpu);
  const Bytes granted = held.movable + held.wired + held.wired_unbacked;
  return {granted + held.beside, granted};
}

}  // namespace gpurota::daemon
