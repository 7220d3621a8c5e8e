#include "daemon/daemon.h"

#include "base/log.h"
#include "daemon/doctor.h"
#include "sys/accounts.h"

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How often descendants are followed where there is no cgroup, and a missing driver is looked for.
constexpr Duration kHousekeepingPeriod = std::chrono::seconds(1);

}  // namespace

Daemon::Daemon(World world, config::Config config, Places places)
    : world_(std::move(world)),
      probe_(world_.make_probe()),
      config_(std::move(config)),
      places_(std::move(places)),
      gpus_({}),
      users_(world_.loop, world_.accounts, config_, ::geteuid()),
      leases_({world_.loop, world_.store, world_.processes, gpus_, grants_, config_,
               world_.wall_clock, world_.make_token,
               [this](const LeaseEntry& entry, bool gone) { on_lease_change(entry, gone); },
               [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
               [this](LeaseId lease) { return holds_memory(lease); },
               [this](uid_t uid) { return users_.limits_of(uid); },
               [this](uid_t uid) { return queue_.held_by(uid); },
               [this](const AcquireRequest& request) { return queue_.choose(request); }}),
      queue_({world_.loop, world_.store, world_.processes, leases_, gpus_, world_.wall_clock,
              [this](const QueueEntry& entry) { control_.on_request_change(entry); },
              [this](const QueueEntry& entry, const LeaseEntry& lease) {
                control_.on_request_granted(entry, lease);
              },
              [this](const QueueEntry& entry, const Error& why) {
                control_.on_request_gone(entry, why);
              }}),
      attribution_(world_.processes, leases_),
      automatic_({leases_, attribution_, world_.processes, gpus_, config_, sys::group_id}),
      limits_({leases_, grants_, config_, {}}),
      tenants_({world_.loop, world_.processes, leases_, grants_, config_, automatic_,
                [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
                [this](pid_t pid) { return lease_of_process(pid); }}),
      views_({config_, world_.processes, gpus_, leases_, queue_, grants_, tenants_, attribution_,
              [this](uid_t uid) { return users_.is_administrator(uid); }}),
      methods_({leases_, queue_, gpus_, views_, places_.tenant_socket, places_.preload,
                [this] { return driver_; }, [this] { return driver_error_; },
                [this] { return doctor(); },
                [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
                [this] { return reload(); }, world_.wall_clock}),
      control_({world_.loop, config_,
                [this](const Caller& caller, const proto::Call& call) {
                  return methods_.call(caller, call);
                },
                [this](const Caller& caller, const LeaseEntry& entry, bool gone) {
                  return methods_.describe(caller, entry, gone);
                },
                [this](LeaseId lease) { leases_.abandon(lease); },
                [this](uid_t uid, const std::vector<gid_t>& groups) { users_.greet(uid, groups); },
                [this](const Caller& caller, const QueueEntry& entry) {
                  return methods_.waits(caller, entry);
                },
                [this](const Caller& caller, const LeaseEntry& lease) {
                  return methods_.granted(caller, lease);
                },
                [this](RequestId request) {
                  queue_.leave(request, Error{Code::kGone, 0, "its connection was closed"});
                }}),
      sampler_(world_.loop, world_.make_probe, config_.watch_period,
               {[this](const GpuUuid& gpu) { tenants_.before_look(gpu); },
                [this](GpuSample sample, TimePoint taken) { on_sample(std::move(sample), taken); },
                [this](const GpuUuid& gpu) { return hurried(gpu); }}) {}

Daemon::~Daemon() = default;

Result<void> Daemon::start() {
  users_.resolve_now();
  grants_.set_throttle(LimitKeeper::throttle(config_));
  discover();
  GPUROTA_TRY(leases_.restore());
  GPUROTA_TRY(queue_.restore());
  // Programs that held memory under the last daemon come back within the grace; until then nobody
  // of their lease is granted what they may hold already.
  const TimePoint settled = world_.loop.now() + config_.reconnect_grace;
  for (const auto& [id, entry] : leases_.entries()) grants_.hold_until(id, settled);
  const ipc::ListenOptions options{0, places_.socket_mode, places_.group, 256};
  ipc::ListenOptions tenant = options;
  tenant.type = SOCK_SEQPACKET;
  GPUROTA_TRY(tenants_.listen(places_.tenant_socket, tenant));
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  ipc::ListenOptions control = options;
  control.type = SOCK_STREAM;
  GPUROTA_TRY(control_.listen(places_.control_socket, control));
  keep_house();
  return {};
}

Result<void> Daemon::reload() {
  if (!world_.load_config) return fail(Code::kUnavailable, "there is no configuration file");
  auto loaded = world_.load_config();
  if (!loaded) {
    log::error("the configuration is not taken over, the old one holds",
               {{"error", loaded.error().message}});
    return tl::unexpected(std::move(loaded).error());
  }
  config::Config config = std::move(*loaded);
  if (config.group != config_.group) {
    log::warn("`group` has changed, which takes a restart; the rest of the configuration holds now",
              {{"group", config.group}});
    config.group = config_.group;
  }
  config_ = std::move(config);
  users_.resolve_soon();
  sampler_.set_period(config_.watch_period);
  grants_.set_throttle(LimitKeeper::throttle(config_));
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  log::info("the configuration has been read again");
  return {};
}

void Daemon::discover() {
  auto driver = probe_->read_driver();
  auto infos = driver ? probe_->read_gpus() : tl::unexpected(driver.error());
  if (!infos) {
    if (!driver_error_) {
      log::warn("no GPU can be seen, looking again every second",
                {{"error", infos.error().message}});
    }
    driver_error_ = infos.error();
    return;
  }
  driver_error_.reset();
  driver_ = *driver;
  adopt_gpus(std::move(*infos));
}

void Daemon::adopt_gpus(std::vector<GpuInfo> infos) {
  gpus_ = GpuTable(infos);
  log::info("GPUs found", {{"count", infos.size()}, {"driver", driver_->driver_version}});
  for (const GpuInfo& info : infos) sampler_.watch(info);
  queue_.poke();
}

Daemon::Shares Daemon::share_out(const GpuSample& sample) {
  Shares shares;
  for (const GpuProcess& process : sample.processes) {
    const Bytes used = process.used.value_or(Bytes());
    auto lease = tenants_.lease_of(process.pid);
    const bool tenant = lease.has_value();
    const Attribution::Owner& owner = attribution_.owner_of(process.pid);
    if (!lease) lease = owner.lease;
    if (!lease && owner.uid && !process.graphics) {
      lease = leases_.reservation_for(*owner.uid, sample.uuid);
      if (lease) leases_.cover(*lease, process.pid);
    }
    if (lease && leases_.find(*lease) && leases_.find(*lease)->lease.find_gpu(sample.uuid)) {
      shares.holders.insert(*lease);
      if (!tenant) shares.outsiders[*lease] += used;
    } else if (!process.graphics) {
      shares.unreserved += used;
      if (owner.uid) shares.unreserved_by[*owner.uid] += used;
    }
  }
  return shares;
}

void Daemon::on_sample(GpuSample sample, TimePoint taken) {
  GpuEntry* const entry = gpus_.find(sample.uuid);
  if (!entry) return;
  if (sample.error != entry->sample.error) {
    log::warn(sample.error.empty() ? "GPU answers again" : "GPU in error",
              {{"gpu", entry->info.index}, {"error", sample.error}});
  }
  if (sample.error != entry->sample.error) queue_.poke();
  if (!sample.error.empty()) {
    entry->sample.error = sample.error;  // the rest keeps the last good look
    tenants_.after_failed_look(entry->info.uuid);
    return;
  }
  entry->sample = std::move(sample);
  const Shares shares = share_out(entry->sample);
  const GpuUuid gpu = entry->info.uuid;
  // Whoever waits may have waited for just that.
  if (shares.unreserved != leases_.unreserved_use(gpu)) queue_.poke();
  leases_.set_unreserved_use(gpu, shares.unreserved, shares.unreserved_by);
  holders_[gpu] = shares.holders;
  tenants_.after_look(entry->sample, taken, shares.outsiders);
  limits_.after_look(gpu, world_.loop.now());
  leases_.check_endings();
}

bool Daemon::holds_memory(LeaseId lease) const {
  if (grants_.has_dead(lease)) return true;
  return std::any_of(holders_.begin(), holders_.end(),
                     [&](const auto& gpu) { return gpu.second.contains(lease); });
}

bool Daemon::hurried(const GpuUuid& gpu) const {
  if (grants_.expects_measurement(gpu)) return true;
  const auto& entries = leases_.entries();
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.second.cause && entry.second.lease.find_gpu(gpu);
  });
}

void Daemon::on_lease_change(const LeaseEntry& entry, bool gone) {
  tenants_.on_lease_change(entry, gone);
  if (gone) {
    limits_.forget(entry.lease.id);
  } else {
    tenants_.carry_out(grants_.recall_excess(entry.lease.id));
  }
  control_.on_lease_change(entry, gone);
  queue_.poke();
}

void Daemon::keep_house() {
  if (driver_error_) discover();
  leases_.follow_processes();
  std::set<pid_t> listed;
  for (const GpuEntry& gpu : gpus_.entries()) {
    for (const GpuProcess& process : gpu.sample.processes) listed.insert(process.pid);
  }
  attribution_.keep_only(listed);
  auto timer = world_.loop.add_timer(world_.loop.now() + kHousekeepingPeriod,
                                     ports::Urgency::kHousekeeping, [this] { keep_house(); });
  if (timer) housekeeping_ = std::move(*timer);
}

std::optional<LeaseId> Daemon::lease_of_process(pid_t pid) {
  if (!world_.processes.read_info(pid)) return std::nullopt;
  return attribution_.owner_of(pid).lease;
}

std::vector<proto::Check> Daemon::doctor() {
  Examination machine;
  std::set<pid_t> counted;  // a process may be on several GPUs
  machine.driver = driver_;
  machine.driver_error = driver_error_;
  machine.preload = places_.preload;
  for (const GpuEntry& gpu : gpus_.entries()) {
    machine.gpus.push_back({gpu.info, gpu.sample, sampler_.settings(gpu.info.uuid)});
    for (const GpuProcess& process : gpu.sample.processes) {
      const auto use = tenants_.use_of(process.pid, gpu.info.uuid);
      if (use && counted.insert(process.pid).second) {
        machine.unhooked += use->unhooked;
        machine.unhooked_names.insert(use->unhooked_names.begin(), use->unhooked_names.end());
      }
    }
  }
  read_machine(machine, world_.processes);
  return examine(machine);
}

}  // namespace gpurota::daemon
