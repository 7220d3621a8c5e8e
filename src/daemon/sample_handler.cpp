#include "daemon/sample_handler.h"

#include "base/log.h"
#include "daemon/history/lease_loads.h"
#include "daemon/leases/context_costs.h"
#include "watch/classify.h"

#include <algorithm>
#include <map>

namespace gpurota::daemon {
namespace {

// A smaller change of GpuEntry::machine_use is not worth a new plan of the queue.
constexpr Bytes kMachineStep = mib(64);

}  // namespace

SampleHandler::Shares SampleHandler::share_out(const watch::Reading& reading) {
  Shares shares;
  for (const watch::SeenProcess& process : reading.processes) {
    const watch::SeenLease* lease = watch::owning_lease(process, reading);
    if (!lease) continue;
    shares.used[lease->id] += process.used.value_or(Bytes());
    shares.by_process[process.pid] = process.used.value_or(Bytes());
    shares.owners[process.pid] = lease->id;
    if (!process.tenant || parts_.swap.is_about_to_tell(process.pid)) {
      shares.outsiders[lease->id] += process.used.value_or(Bytes());
      const LeaseEntry* entry = parts_.tables.find(lease->id);
      if (entry && entry->lease.swap())
        shares.swap_outsiders[process.pid] += process.used.value_or(Bytes());
    }
    // A process of the lease's container ends with the lease from now on.
    if (process.lease && process.container && !process.gone) {
      (void)parts_.leases.add_process(lease->id, {process.pid, process.start_ticks});
    }
    // A reservation also covers processes that its user started outside it.
    if (!process.lease && !process.gone)
      parts_.leases.cover(lease->id, {process.pid, process.start_ticks});
  }
  return shares;
}

void SampleHandler::record_state(const GpuEntry& gpu, const std::string& error) {
  const std::string name = parts_.gpus.name_of(gpu.info.uuid);
  log::warn(error.empty() ? "GPU answers again" : "GPU in error",
            {{"gpu", gpu.info.uuid.value}, {"index", name}, {"error", error}});
  Recorder::Event event;
  event.type = error.empty() ? proto::EventType::kGpuRecovered : proto::EventType::kGpuError;
  event.gpu = gpu.info.uuid;
  event.message = "GPU " + name + (error.empty() ? " answers again" : " is in error: " + error);
  parts_.recorder.record(std::move(event));
}

Duration SampleHandler::period_of(const GpuUuid& gpu) const {
  const GpuEntry* const entry = parts_.gpus.find(gpu);
  const auto& leases = parts_.tables.leases;
  const bool busy =
      !entry || !entry->sample.processes.empty() || !entry->sample.error.empty() ||
      parts_.watch.has_open(gpu) || !parts_.states.unreserved(gpu).hidden.bytes.is_zero() ||
      parts_.fillers.is_of_interest(gpu) ||
      std::any_of(leases.begin(), leases.end(),
                  [&](const auto& each) { return each.second.lease.find_gpu(gpu) != nullptr; });
  // An unused GPU is sampled less often: that is enough to find new use.
  const std::chrono::milliseconds period = parts_.config.watch_period;
  return busy ? period : std::max(period, parts_.config.watch.idle_period);
}

// Sets only the error: everything else in the entry stays as in the last good sample.
void SampleHandler::on_error(GpuEntry& entry, const std::string& error) {
  entry.sample.error = error;
  parts_.tenants.after_failed_sample(entry.info.uuid);
  parts_.fillers.on_failed_sample(entry.info.uuid);
  parts_.recorder.on_use(entry.info.uuid, holders_[entry.info.uuid]);  // the loads are unknown
  parts_.series.on_failed_sample(entry.info.uuid);
}

// For a unified GPU, counts the memory in use that does not belong to the processes of the sample.
// Requests may be waiting for a change of this memory.
void SampleHandler::count_machine_use(GpuEntry& entry, const watch::Reading& reading) {
  if (!entry.info.unified) return;
  // If the memory in use is unknown, all memory of the GPU counts as used.
  Bytes use = memory_in_use(entry.info, entry.sample).value_or(entry.info.memory);
  std::map<const watch::SeenLease*, Bytes> of_leases;
  for (const watch::SeenProcess& process : reading.processes) {
    of_leases[watch::owning_lease(process, reading)] += process.used.value_or(Bytes());
  }
  // A process's own report is believed up to the limit of its lease.
  for (const auto& [lease, used] : of_leases) {
    use -= lease && lease->limit ? std::min(used, *lease->limit) : used;
  }
  const auto [less, more] = std::minmax(use, entry.machine_use);
  if (more - less < kMachineStep) return;
  entry.machine_use = use;
  parts_.queue.poke();
}

void SampleHandler::on_sample(GpuSample sample, TimePoint taken) {
  GpuEntry* const entry = parts_.gpus.find(sample.uuid);
  if (!entry) return;
  parts_.answers.changed();
  parts_.on_sample();
  if (sample.error != entry->sample.error) {
    record_state(*entry, sample.error);
    parts_.queue.poke();
  }
  if (!sample.error.empty()) return on_error(*entry, sample.error);
  if (!sample.lists_processes) {
    for (const pid_t pid : parts_.tenants.table().present_on(sample.uuid)) {
      sample.processes.push_back({.pid = pid, .used = std::nullopt});
    }
  }
  entry->sample = std::move(sample);
  entry->taken = taken;
  // Command lines are read ahead, so that they are known when somebody asks.
  for (const GpuProcess& each : entry->sample.processes) {
    (void)parts_.processes.command_of(each.pid);
  }
  watch::Reading reading = parts_.watch.reading_of(entry->sample);
  count_machine_use(*entry, reading);
  Shares shares = share_out(reading);
  recovered_.on_sample(entry->sample, std::move(shares.by_process));
  const GpuUuid gpu = entry->info.uuid;
  holders_[gpu] = shares.used;
  parts_.tenants.after_sample(entry->sample, taken, shares.outsiders);
  parts_.watch.reckon_hidden(reading);
  const GpuStates::Unreserved unreserved = parts_.watch.unreserved(reading);
  // Requests may be waiting for a change of unreserved use.
  if (!unreserved.is_as(parts_.states.unreserved(gpu))) parts_.queue.poke();
  parts_.states.set_unreserved(gpu, unreserved);
  remember_context_cost(gpu, parts_.grants, parts_.driver.info->driver_version, parts_.states);
  parts_.turns.set_outsiders(gpu, {std::move(shares.swap_outsiders), unreserved.all});
  parts_.limits.after_sample(gpu, parts_.loop.now());
  auto loads = lease_loads(*entry, parts_.tables.leases, shares.owners);
  parts_.recorder.on_use(gpu, shares.used, loads);
  parts_.series.on_sample(gpu, shares.used, std::move(loads));
  parts_.jobs.on_use(gpu, shares.used);
  // A GPU in MIG mode lists the processes of all its instances, but each process is watched on its
  // own instance.
  if (!entry->info.mig_enabled) parts_.watch.on_sample(reading);
  // Leases may end only after the watch has run, because a finding needs the lease that it is
  // about.
  parts_.leases.check_endings();
  parts_.fillers.on_sample(gpu, parts_.watch.has_foreign(reading), shares.used);
}

// Whether a sample can show the memory that a context takes: not on a unified GPU whose processes
// have no figures.
bool SampleHandler::measures(const GpuUuid& gpu) const {
  const GpuEntry* const entry = parts_.gpus.find(gpu);
  if (!entry || !entry->info.unified) return true;
  const auto& processes = entry->sample.processes;
  return std::any_of(processes.begin(), processes.end(),
                     [](const GpuProcess& each) { return each.used.has_value(); });
}

bool SampleHandler::is_hurried(const GpuUuid& gpu) const {
  if ((parts_.grants.expects_measurement(gpu) && measures(gpu)) ||
      parts_.swap.expects_sample(gpu) || parts_.fillers.expects_sample(gpu) ||
      parts_.states.unreserved(gpu).hidden.is_leaving) {
    return true;
  }
  const auto& entries = parts_.tables.leases;
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.second.cause && entry.second.lease.find_gpu(gpu);
  });
}

bool SampleHandler::wants_process_loads(const GpuUuid& gpu) const {
  const auto holders = holders_.find(gpu);
  if (holders == holders_.end() || holders->second.empty()) return false;
  return holders->second.size() > 1 || !parts_.states.unreserved(gpu).all.is_zero();
}

void SampleHandler::on_figures(const GpuUuid& gpu, GpuFigures figures) {
  GpuEntry* const entry = parts_.gpus.find(gpu);
  if (!entry) return;
  // While the loads of processes are wanted, the last loads stay until new loads are read.
  if (!figures.processes && wants_process_loads(gpu)) {
    figures.processes = std::move(entry->figures.processes);
  }
  entry->figures = std::move(figures);
  parts_.answers.changed();
}

void SampleHandler::on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids) {
  parts_.fillers.on_polled(gpu, pids);
}

bool SampleHandler::holds_memory(LeaseId lease) const {
  return std::any_of(holders_.begin(), holders_.end(),
                     [&](const auto& gpu) { return gpu.second.contains(lease); });
}

}  // namespace gpurota::daemon
