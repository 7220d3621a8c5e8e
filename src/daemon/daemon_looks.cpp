// What the daemon sees: which GPUs there are, and what a look at one of them means to everybody.
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/leases/context_costs.h"
#include "watch/classify.h"

#include <algorithm>

namespace gpurota::daemon {

Result<Daemon::Machine> Daemon::ask_driver(ports::GpuProbe& probe) {
  GPUROTA_ASSIGN_OR_RETURN(ports::DriverInfo driver, probe.read_driver());
  GPUROTA_ASSIGN_OR_RETURN(std::vector<GpuInfo> gpus, probe.read_gpus());
  std::vector<GpuLink> links = probe.read_links(gpus);
  return Machine{std::move(driver), std::move(gpus), std::move(links)};
}

bool Daemon::discover(std::chrono::milliseconds patience) {
  if (discovery_.unfinished() != 0) return false;
  driver_asked_ = world_.loop.now();
  return discovery_.run_and_wait(
      patience, [probe = probe_] { return ask_driver(*probe); },
      [this](Result<Machine> machine) { on_discovery(std::move(machine)); });
}

void Daemon::discover_again() {
  constexpr std::chrono::milliseconds kHangs = std::chrono::minutes(1);
  if (discover(std::chrono::milliseconds(0))) return;
  const Duration since = world_.loop.now() - driver_asked_;
  if (since >= std::min(kHangs, world_.patience))
    no_gpus(Error{Code::kUnavailable, 0, kDriverHangs});
}

void Daemon::no_gpus(Error why) {
  if (!driver_error_ || driver_error_->message != why.message) {
    log::warn("no GPU can be seen, looking again every second", {{"error", why.message}});
  }
  driver_error_ = std::move(why);
}

void Daemon::on_discovery(Result<Machine> machine) {
  if (!machine) return no_gpus(std::move(machine).error());
  driver_error_.reset();
  driver_ = std::move(machine->driver);
  gpus_ = GpuTable(machine->gpus);
  queue_.set_topology(Topology(machine->links));
  answers_.changed();
  log::info("GPUs found", {{"count", machine->gpus.size()}, {"driver", driver_->driver_version}});
  recall_context_costs(gpus_, leases_, driver_->driver_version, grants_);
  recorder_.on_gpus_found(leases_.entries());
  for (const GpuInfo& info : machine->gpus) sampler_.watch(info);
  turns_.refresh();
  queue_.poke();
}

Daemon::Shares Daemon::share_out(const watch::Look& look) {
  Shares shares;
  for (const watch::SeenProcess& process : look.processes) {
    const watch::SeenLease* lease = watch::owning_lease(process, look);
    if (!lease) continue;
    shares.used[lease->id] += process.used.value_or(Bytes());
    shares.by_process[process.pid] = process.used.value_or(Bytes());
    if (!process.tenant || swap_.is_about_to_tell(process.pid)) {
      shares.outsiders[lease->id] += process.used.value_or(Bytes());
      const LeaseEntry* entry = leases_.find(lease->id);
      if (entry && entry->lease.swap())
        shares.swap_outsiders[process.pid] += process.used.value_or(Bytes());
    }
    // What its user started elsewhere is in a reservation too.
    if (!process.lease && !process.gone)
      leases_.cover(lease->id, {process.pid, process.start_ticks});
  }
  return shares;
}

void Daemon::record_state(const GpuEntry& gpu, const std::string& error) {
  const std::string name = gpus_.name_of(gpu.info.uuid);
  log::warn(error.empty() ? "GPU answers again" : "GPU in error",
            {{"gpu", name}, {"error", error}});
  Recorder::Event event;
  event.type = error.empty() ? proto::EventType::kGpuRecovered : proto::EventType::kGpuError;
  event.gpu = gpu.info.uuid;
  event.message = "GPU " + name + (error.empty() ? " answers again" : " is in error: " + error);
  recorder_.record(std::move(event));
}

Duration Daemon::period_of(const GpuUuid& gpu) const {
  const GpuEntry* const entry = gpus_.find(gpu);
  const auto& leases = leases_.entries();
  const bool busy = !entry || !entry->sample.processes.empty() || !entry->sample.error.empty() ||
                    keeper_.has_open(gpu) || fillers_.is_of_interest(gpu) ||
                    std::any_of(leases.begin(), leases.end(), [&](const auto& each) {
                      return each.second.lease.find_gpu(gpu) != nullptr;
                    });
  // Nothing there: a look now and then finds what comes.
  const std::chrono::milliseconds period = config_.watch_period;
  return busy ? period : std::max(period, config_.watch.idle_period);
}

void Daemon::on_sample(GpuSample sample, TimePoint taken) {
  GpuEntry* const entry = gpus_.find(sample.uuid);
  if (!entry) return;
  answers_.changed();
  if (sample.error != entry->sample.error) {
    record_state(*entry, sample.error);
    queue_.poke();
  }
  if (!sample.error.empty()) {
    entry->sample.error = sample.error;  // the rest keeps the last good look
    tenants_.after_failed_look(entry->info.uuid);
    fillers_.on_failed_look(entry->info.uuid);
    return;
  }
  entry->sample = std::move(sample);
  entry->taken = taken;
  // They are read while nobody asks, so that they are known when somebody does.
  for (const GpuProcess& each : entry->sample.processes) {
    (void)world_.processes.command_of(each.pid);
  }
  const watch::Look look = keeper_.look_at(entry->sample);
  Shares shares = share_out(look);
  recovered_.on_look(entry->sample, std::move(shares.by_process));
  const GpuUuid gpu = entry->info.uuid;
  const WatchKeeper::Unreserved unreserved = keeper_.unreserved(look);
  // Whoever waits may have waited for just that.
  if (unreserved.all != leases_.unreserved_use(gpu)) queue_.poke();
  leases_.set_unreserved_use(gpu, unreserved.all, unreserved.by_user);
  std::set<LeaseId>& holders = holders_[gpu];
  holders.clear();
  for (const auto& [lease, used] : shares.used) holders.insert(lease);
  tenants_.after_look(entry->sample, taken, shares.outsiders);
  remember_context_cost(gpu, grants_, driver_->driver_version, leases_);
  turns_.set_outsiders(gpu, {std::move(shares.swap_outsiders), unreserved.all});
  limits_.after_look(gpu, world_.loop.now());
  recorder_.on_use(gpu, shares.used);
  // The parents of MIG instances list the processes of all of them: those are looked at there.
  if (!entry->info.mig_enabled) keeper_.on_look(look);
  // Last: what is found is told of leases that are still there.
  leases_.check_endings();
  fillers_.on_look(gpu, keeper_.has_foreign(look), shares.used);
}

watch::Library Daemon::library_of(const watch::SeenProcess& process) {
  const LeaseEntry* const entry = process.lease ? leases_.find(*process.lease) : nullptr;
  return libraries_.state_of(process, entry && entry->automatic);
}

std::optional<bool> Daemon::holds_memory(const Lease& lease, pid_t pid) const {
  bool looked = true;
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const entry = gpus_.find(share.uuid);
    if (!entry || entry->taken == TimePoint{}) {
      looked = false;
      continue;
    }
    const auto& seen = entry->sample.processes;
    if (std::any_of(seen.begin(), seen.end(), [&](const auto& p) { return p.pid == pid; })) {
      return true;
    }
  }
  return looked ? std::optional(false) : std::nullopt;
}

std::optional<std::chrono::seconds> Daemon::gpu_time_of(uid_t uid, WallTime from) {
  const auto sums = recorder_.usage_of(uid, from, world_.wall_clock());
  // The history is not to be read just now: what it said last is true enough until then.
  if (const auto known = gpu_times_.find(uid); !sums && known != gpu_times_.end()) {
    return known->second;
  }
  if (!sums || sums->empty()) return std::nullopt;
  std::chrono::milliseconds total{0};
  for (const ports::UsageSum& sum : *sums) {
    const bool filler = sum.key == to_string(LeaseKind::kFiller);
    if (filler && !config_.filler.count_against_limits) continue;
    total += std::chrono::milliseconds(sum.gpu_ms);
  }
  return gpu_times_[uid] = std::chrono::duration_cast<std::chrono::seconds>(total);
}

bool Daemon::hurried(const GpuUuid& gpu) const {
  if (grants_.expects_measurement(gpu) || swap_.expects_look(gpu) || fillers_.expects_look(gpu)) {
    return true;
  }
  const auto& entries = leases_.entries();
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.second.cause && entry.second.lease.find_gpu(gpu);
  });
}

}  // namespace gpurota::daemon
