#include "daemon/health.h"

#include "proto/codec.h"

#include <chrono>
#include <utility>

namespace gpurota::daemon {

void Health::check_store(Duration period) {
  const TimePoint now = parts_.loop.now();
  if (now - store_checked_ < period) return;
  store_checked_ = now;
  parts_.leases.check_store();
}

std::optional<Error> Health::store_error() const {
  return parts_.tables.store_error ? parts_.tables.store_error : disk_error_;
}

proto::Health::Reply Health::health() const {
  proto::Health::Reply reply;
  reply.since = since_;
  if (parts_.driver.error) reply.driver_error = parts_.driver.error->message;
  if (const auto error = store_error()) reply.store_error = error->message;
  for (const auto& [type, count] : parts_.recorder.counts()) reply.events.push_back({type, count});
  reply.waits = parts_.recorder.waits();
  reply.recovered_bytes = parts_.sample_handler.recovered();
  reply.refusals = parts_.records.refused_allocations();
  if (parts_.longest_rounds) {
    using std::chrono::microseconds;
    const sys::LongestRounds longest = parts_.longest_rounds();
    reply.loop_longest_us = std::chrono::ceil<microseconds>(longest.since_start).count();
    reply.loop_longest_minute_us = std::chrono::ceil<microseconds>(longest.last_minute).count();
  }
  return reply;
}

std::vector<Examination::Use> Health::budgets(uid_t viewer) {
  std::vector<Examination::Use> uses;
  const bool all = parts_.views.sees_all(viewer, std::nullopt);
  for (const Budget budget : kBudgets) {
    const auto user = all ? parts_.budgets.first(budget) : std::optional(viewer);
    const std::uint64_t used = user ? parts_.budgets.used(*user, budget) : 0;
    if (used == 0) continue;
    const bool bytes =
        budget == Budget::kUnread || budget == Budget::kUnserved || budget == Budget::kJobLogs;
    uses.push_back({to_string(budget), parts_.processes.user_name(*user), used,
                    parts_.budgets.most(*user, budget), bytes});
  }
  return uses;
}

void Health::examine_self(Examination& machine, uid_t viewer) {
  machine.budgets = budgets(viewer);
  machine.driver = parts_.driver.info;
  machine.driver_error = parts_.driver.error;
  // Checked at most once a second, so that no client can make the daemon write all the time.
  check_store(std::chrono::seconds(1));
  machine.store_error = store_error();
  machine.history_error = parts_.series.error();
  machine.history_trouble = parts_.series.trouble();
  machine.automatic = parts_.automatic.describe();
  machine.keeps_free_gpus_for_ever =
      parts_.site.config().keep_free_gpus == std::chrono::milliseconds(0);
  machine.cdi = parts_.cdi.describe();
  machine.cdi_trouble = parts_.cdi.trouble();
  machine.group = parts_.site.config().group;
  machine.config = parts_.site.summary();
  for (const config::Problem& problem : parts_.users.unknown()) {
    if (!parts_.views.sees_all(viewer, std::nullopt)) break;  // a problem may name other users
    machine.config_warnings.push_back(to_string(problem));
  }
  for (const config::Change& change : parts_.site.pending()) {
    machine.config_warnings.push_back(to_string(change));
  }
  for (const auto& [id, entry] : parts_.tables.leases) {
    const HostPins pins = parts_.turns.pins_of(id);
    if (pins.may_move.is_zero()) continue;
    ++machine.moving_leases;
    machine.host_pins.pinned += pins.pinned;
    machine.host_pins.may_pin += std::min(pins.may_pin, pins.may_move);
    machine.host_pins.may_move += pins.may_move;
  }
  machine.preload = parts_.preload;
  machine.times_not_limited = parts_.watch.times_not_limited();
  machine.access = parts_.strict.report();
  if (machine.access && !parts_.views.sees_all(viewer, std::nullopt)) {
    for (sys::DeviceOpener& opener : machine.access->openers) opener.pid = 0;
  }
  machine.driver_limits = parts_.driver_limits.report();
  if (parts_.longest_rounds) machine.rounds = parts_.longest_rounds();
}

void Health::examine_gpu(Examination& machine, const GpuEntry& gpu) const {
  machine.gpus.push_back({.info = gpu.info,
                          .name = parts_.gpus.name_of(gpu.info.uuid),
                          .sample = gpu.sample,
                          .reserve = parts_.site.config().unified_reserve.of(gpu.info.memory),
                          .settings = parts_.sampler.settings(gpu.info.uuid)});
  for (const GpuProcess& process : gpu.sample.processes) {
    const auto use = parts_.tenants.use_of(process.pid, gpu.info.uuid);
    if (use && machine.counted.insert(process.pid).second) {
      machine.unhooked += use->unhooked;
      machine.unhooked_names.insert(use->unhooked_names.begin(), use->unhooked_names.end());
    }
  }
}

void Health::examine_findings(Examination& machine) const {
  for (const watch::Finding& finding : parts_.watch.seen()) {
    const bool nobody = finding.kind == watch::FindingKind::kUnreservedUse && !finding.uid &&
                        finding.processes.empty();
    if (nobody)
      machine.unaccounted[parts_.gpus.name_of(finding.gpu)] += finding.used.value_or(Bytes());
  }
}

class Health::DoctorAnswer final : public LongAnswer {
 public:
  DoctorAnswer(Health& health, uid_t viewer) : health_(health), viewer_(viewer) {}

  std::optional<std::string> go_on() override {
    const auto& gpus = health_.parts_.gpus.entries();
    if (!begun_) {
      health_.examine_self(machine_, viewer_);
      begun_ = true;
    } else if (gpu_ < gpus.size()) {
      health_.examine_gpu(machine_, gpus[gpu_++]);
    } else if (!read_) {
      health_.examine_findings(machine_);
      read_machine(machine_, health_.parts_.processes);
      read_ = true;
    } else {
      return proto::reply_json<proto::Doctor>({examine(machine_)});
    }
    return std::nullopt;
  }

  // Health has to answer while the store fails, so the answer does not read the store.
  bool reads_store() const override { return false; }

 private:
  Health& health_;
  uid_t viewer_;
  Examination machine_{};
  bool begun_ = false, read_ = false;
  std::size_t gpu_ = 0;
};

std::shared_ptr<LongAnswer> Health::doctor(uid_t viewer) {
  return std::make_shared<DoctorAnswer>(*this, viewer);
}

}  // namespace gpurota::daemon
