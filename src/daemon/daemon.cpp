#include "daemon/daemon.h"

#include "base/log.h"
#include "daemon/context_costs.h"
#include "lease/gpu_selector.h"

#include <fmt/format.h>

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How often descendants are followed where there is no cgroup, and a missing driver is looked for.
constexpr Duration kHousekeepingPeriod = std::chrono::seconds(1);
constexpr Duration kStorePeriod = std::chrono::seconds(60);
// A reload waits so long for the account database, so that it holds at once where that answers.
constexpr std::chrono::milliseconds kReloadPatience{50};

}  // namespace

Daemon::Daemon(World world, config::Config config, Places places)
    : world_(std::move(world)),
      probe_(world_.make_probe()),
      discovery_(world_.loop, "driver"),
      config_(std::move(config)),
      places_(std::move(places)),
      log_([] { return std::chrono::steady_clock::now(); }),
      budgets_({config_, world_.descriptors, ::geteuid(),
                [this](uid_t uid) { return holds_lease(uid); },
                [this] { return world_.loop.now(); }}),
      gpus_({}),
      users_(world_.loop, world_.accounts, config_, ::geteuid(), [this] { on_rules_change(); }),
      recorder_({world_.loop, world_.history, places_.audit_directory, config_, world_.processes,
                 gpus_, world_.wall_clock, [this] { control_.on_news(); },
                 [this](uid_t uid) { return users_.group_names(uid); }, places_.event_spill,
                 world_.durability}),
      leases_(
          {.loop = world_.loop,
           .store = world_.store,
           .processes = world_.processes,
           .gpus = gpus_,
           .grants = grants_,
           .config = config_,
           .wall_clock = world_.wall_clock,
           .make_token = world_.make_token,
           .on_change = [this](const LeaseEntry& entry,
                               bool gone) { on_lease_change(entry, gone); },
           .look_soon = [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
           .holds_memory = [this](LeaseId lease) { return holds_memory(lease); },
           .limits_of = [this](uid_t uid) { return users_.limits_of(uid); },
           .waiting = [this](uid_t uid) { return queue_.held_by(uid); },
           .choose = [this](const AcquireRequest& request) { return queue_.choose(request); },
           .used = [this](uid_t uid, WallTime from) { return gpu_time_of(uid, from); },
           .grace_of =
               [this](const LeaseEntry& entry) {
                 const bool filler = entry.lease.kind == LeaseKind::kFiller;
                 return filler ? fillers_.grace_of(entry) : Duration(config_.grace);
               },
           .admit_swap = [this](const Lease& lease) { return turns_.admit(lease); },
           .admit_new = [this](uid_t uid) { return budgets_.spend_lease(uid); },
           .turns_need =
               [this](const GpuUuid& gpu) {
                 const TurnKeeper::Need need = turns_.need(gpu);
                 return std::pair(need.most, need.wired);
               },
           .stay_of = [this](LeaseId lease) { return fillers_.stay_of(lease); },
           .on_time_over = [this](const ports::ProcessId& holder,
                                  const std::string& why) { jobs_.on_time_over(holder, why); }}),
      queue_({.loop = world_.loop,
              .store = world_.store,
              .processes = world_.processes,
              .leases = leases_,
              .gpus = gpus_,
              .config = config_,
              .wall_clock = world_.wall_clock,
              .on_change =
                  [this](const QueueEntry& entry) {
                    recorder_.on_request(entry);
                    control_.on_request_change(entry);
                  },
              .on_granted =
                  [this](const QueueEntry& entry, const LeaseEntry& lease) {
                    recorder_.on_request_granted(entry, lease.lease.id);
                    control_.on_request_granted(entry, lease);
                  },
              .on_gone =
                  [this](const QueueEntry& entry, const Error& why) {
                    recorder_.on_request_gone(entry, why);
                    control_.on_request_gone(entry, why);
                  },
              .on_settled = [this] { answers_.changed(); },
              .move_out = [this](LeaseId lease,
                                 const std::string& why) { fillers_.move_out(lease, why); }}),
      attribution_(world_.processes, leases_),
      automatic_({leases_, attribution_, world_.processes, gpus_, config_,
                  [this]() -> const std::set<gid_t>& { return users_.automatic_groups(); },
                  [this](const AcquireRequest& request) { return queue_.make_way(request); }}),
      limits_({leases_, grants_, config_,
               [this](LeaseId lease, const std::string& text) { notify(lease, text); },
               [this](LeaseId lease, const GpuUuid& gpu) { return turns_.charge(lease, gpu); }}),
      turns_({world_.loop, config_, gpus_, leases_, recorder_,
              [this](uid_t uid) { return users_.limits_of(uid); },
              [this](LeaseId lease, const std::string& text) { notify(lease, text); }}),
      swap_({world_.loop, world_.processes, turns_, grants_, config_,
             [this](uid_t uid) { return users_.limits_of(uid); },
             [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
             [this](LeaseId lease, pid_t pid, const GpuUuid& gpu, Bytes asked) {
               record_refusal(lease, pid, gpu, asked);
             }}),
      tenants_({.loop = world_.loop,
                .processes = world_.processes,
                .leases = leases_,
                .grants = grants_,
                .config = config_,
                .budgets = budgets_,
                .automatic = automatic_,
                .swap = swap_,
                .look_soon = [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
                .owner_of = [this](pid_t pid) { return lease_of_process(pid); },
                .on_refusal = [this](LeaseId lease, pid_t pid, const GpuUuid& gpu,
                                     Bytes asked) { record_refusal(lease, pid, gpu, asked); },
                .on_crowd =
                    [this](const Lease& lease, pid_t pid, const std::string& why) {
                      recorder_.on_crowd(lease.id, lease.uid, pid, why);
                    },
                .holds_memory = [this](const Lease& lease,
                                       pid_t pid) { return holds_memory(lease, pid); },
                .durability = world_.durability}),
      libraries_(world_.loop, places_.tenant_socket),
      keeper_(
          {.loop = world_.loop,
           .processes = world_.processes,
           .config = config_,
           .gpus = gpus_,
           .leases = leases_,
           .attribution = attribution_,
           .recorder = recorder_,
           .tenant_lease = [this](pid_t pid) { return tenants_.lease_of(pid); },
           .notify = [this](LeaseId lease, const std::string& message) { notify(lease, message); },
           .release =
               [this](LeaseId lease, const std::string& reason) {
                 leases_.end(lease, EndCause::kReleased, reason);
               },
           .look_soon = [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
           .wall_clock = world_.wall_clock,
           .group_names = [this](uid_t uid) { return users_.group_names(uid); },
           .over_limit = [this](LeaseId lease,
                                const std::string& what) { stop_job_of(lease, what); },
           .library = [this](const watch::SeenProcess& process) { return library_of(process); }}),
      views_({.config = config_,
              .processes = world_.processes,
              .gpus = gpus_,
              .leases = leases_,
              .queue = queue_,
              .grants = grants_,
              .tenants = tenants_,
              .attribution = attribution_,
              .is_administrator = [this](uid_t uid) { return users_.is_administrator(uid); },
              .watch = keeper_,
              .turns = turns_,
              .now = [this] { return std::pair(world_.loop.now(), world_.wall_clock()); }}),
      jobs_({.loop = world_.loop,
             .processes = world_.processes,
             .supervisor = supervisor_parts(),
             .wall_clock = world_.wall_clock,
             .grace = [this] { return Duration(config_.grace); },
             .directory = places_.jobs}),
      fillers_({.loop = world_.loop,
                .processes = world_.processes,
                .supervisor = supervisor_parts(),
                .config = config_,
                .gpus = gpus_,
                .leases = leases_,
                .turns = turns_,
                .recorder = recorder_,
                .poke = [this] { queue_.poke(); },
                .wall_clock = world_.wall_clock,
                .glimpse = [this](const GpuUuid& gpu,
                                  Duration period) { sampler_.glimpse(gpu, period); },
                .look_soon = [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
                .directory = places_.fillers}),
      methods_(
          {.leases = leases_,
           .queue = queue_,
           .gpus = gpus_,
           .views = views_,
           .tenant_socket = places_.tenant_socket,
           .preload = places_.preload,
           .driver = [this] { return driver_; },
           .driver_error = [this] { return driver_error_; },
           .doctor = [this](uid_t viewer) { return doctor(viewer); },
           .look_soon = [this](const GpuUuid& gpu) { sampler_.look_soon(gpu); },
           .recorder = recorder_,
           .reload = [this] { return reload(); },
           .wall_clock = world_.wall_clock,
           .jobs = &jobs_,
           .processes = &world_.processes,
           .health = [this] { return health(); },
           .fillers = &fillers_,
           .answers = &answers_,
           .grant_changes =
               [this] { return grants_.changes() + turns_.changes() + world_.processes.changes(); },
           .turns = &turns_,
           .config = &config_,
           .may_exist = [this](const std::string& user) { return users_.may_exist(user); }}),
      control_({world_.loop, config_, budgets_,
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
                },
                world_.durability}),
      sampler_(world_.loop, world_.make_probe, config_.watch_period,
               {[this](const GpuUuid& gpu) { tenants_.before_look(gpu); },
                [this](GpuSample sample, TimePoint taken) { on_sample(std::move(sample), taken); },
                [this](const GpuUuid& gpu) { return hurried(gpu); },
                [this](const GpuUuid& gpu) { return period_of(gpu); },
                [this](const GpuUuid& gpu, const std::vector<pid_t>& pids) {
                  fillers_.on_glimpse(gpu, pids);
                }}) {
  world_.processes.set_admission([this](uid_t uid) -> Result<std::shared_ptr<void>> {
    GPUROTA_ASSIGN_OR_RETURN(UserBudgets::Held held, budgets_.take(uid, Budget::kDescriptors));
    return std::make_shared<UserBudgets::Held>(std::move(held));
  });
}

Daemon::~Daemon() {
  if (world_.durability) world_.durability->on_news({});
  world_.processes.set_admission({});
  if (!serves_) return;
  Recorder::Event event;
  event.type = proto::EventType::kDaemonStopped;
  event.message = "gpurotad has stopped";
  recorder_.record(std::move(event));
}

Result<void> Daemon::ask() {
  log::info("asking the account database for the names of the configuration");
  if (!users_.resolve(world_.patience)) {
    return fail(
        Code::kUnavailable,
        "the account database does not answer, and without it administrators and users' limits are "
        "unknown: find out why (`getent passwd root`), then start gpurotad again");
  }
  if (const auto& group = users_.socket_group(); group && !*group) {
    return tl::unexpected(group->error());
  }
  log::info("asking the driver for its GPUs");
  if (!discover(world_.patience)) return fail(Code::kUnavailable, kDriverHangs);
  return {};
}

Supervisor::Parts Daemon::supervisor_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .budgets = budgets_,
          .store = world_.programs,
          .keeper = places_.keeper,
          .systemd_run = places_.systemd_run,
          .gpurota = places_.gpurota,
          .runtime_dir = places_.runtime_dir,
          .own_uid = ::geteuid()};
}

ipc::ListenOptions Daemon::listen_options(int type) const {
  ipc::ListenOptions options{type, places_.socket_mode, {}, 256};
  if (const auto& group = users_.socket_group()) {
    options.mode = 0660;
    options.group = **group;
  }
  return options;
}

Result<void> Daemon::start() {
  since_ = world_.wall_clock();
  grants_.set_throttle(LimitKeeper::throttle(config_));
  GPUROTA_TRY(leases_.restore());
  if (driver_) recall_context_costs(gpus_, leases_, driver_->driver_version, grants_);
  GPUROTA_TRY(queue_.restore());
  GPUROTA_TRY(recorder_.start(leases_.entries()));
  if (world_.durability) {
    world_.durability->on_news([this](const ports::Durability::News& news) {
      disk_error_ = news.error;
      recorder_.on_durability(news);
      control_.on_durability(news);
      tenants_.on_durability(news);
    });
  }
  // Programs that held memory under the last daemon come back within the grace; until then nobody
  // of their lease is granted what they may hold already.
  const TimePoint settled = world_.loop.now() + config_.reconnect_grace;
  for (const auto& [id, entry] : leases_.entries()) grants_.hold_until(id, settled);
  turns_.restore(settled);
  GPUROTA_TRY(tenants_.listen(places_.tenant_socket, listen_options(SOCK_SEQPACKET)));
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  GPUROTA_TRY(control_.listen(places_.control_socket, listen_options(SOCK_STREAM)));
  GPUROTA_TRY(jobs_.restore());
  for (const auto& [id, entry] : leases_.entries()) {
    if (entry.lease.kind == LeaseKind::kJob && entry.holder) {
      jobs_.on_lease_restored(id, entry.holder->id);
    }
    for (const auto& [pid, command] : entry.commands) {
      jobs_.on_lease_restored(id, command.holder.id);
    }
    tell_job(entry);
  }
  GPUROTA_TRY(fillers_.restore());
  keep_house();
  serves_ = true;
  Recorder::Event event;
  event.type = proto::EventType::kDaemonStarted;
  event.message = "gpurotad has started";
  recorder_.record(std::move(event));
  return {};
}

Result<void> Daemon::reload() {
  if (!world_.load_config) return fail(Code::kUnavailable, "there is no configuration file");
  auto loaded = world_.load_config();
  if (!loaded) {
    log::error("the new configuration is refused, the old one stays in effect",
               {{"error", loaded.error().message}});
    return tl::unexpected(std::move(loaded).error());
  }
  config::Config config = std::move(*loaded);
  if (config.group != config_.group) {
    log::warn(
        "`group` has changed, which needs a restart; the rest of the configuration is in effect",
        {{"group", config.group}});
    config.group = config_.group;
  }
  config_ = std::move(config);
  users_.resolve(kReloadPatience);
  sampler_.set_period(config_.watch_period);
  grants_.set_throttle(LimitKeeper::throttle(config_));
  on_rules_change();
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  log::info("the configuration has been read again");
  Recorder::Event event;
  event.type = proto::EventType::kConfigReloaded;
  event.message = "the configuration has been read again";
  recorder_.record(std::move(event));
  return {};
}

void Daemon::on_rules_change() {
  answers_.changed();
  turns_.refresh();
  swap_.update_terms();
  queue_.poke();
}

void Daemon::notify(LeaseId lease, const std::string& message) {
  const LeaseEntry* const entry = leases_.find(lease);
  if (!entry) return;
  control_.tell_holders(lease, [&](const Caller& caller) {
    return methods_.describe(caller, *entry, false, message);
  });
}

bool Daemon::holds_lease(uid_t uid) const {
  return std::any_of(leases_.entries().begin(), leases_.entries().end(),
                     [&](const auto& entry) { return entry.second.lease.uid == uid; });
}

bool Daemon::holds_memory(LeaseId lease) const {
  if (grants_.has_dead(lease) || swap_.has_dead(lease)) return true;
  return std::any_of(holders_.begin(), holders_.end(),
                     [&](const auto& gpu) { return gpu.second.contains(lease); });
}

void Daemon::tell_job(const LeaseEntry& entry) {
  const bool reserved = entry.lease.kind == LeaseKind::kReservation;
  if (entry.lease.kind != LeaseKind::kJob && !reserved) return;
  // The time of a reservation is not that of what runs under it.
  const bool taken = entry.cause == EndCause::kReleased;
  if (taken || (reserved && entry.cause == EndCause::kExpired)) {
    jobs_.on_lease_ending(entry.lease.id, Jobs::LeaseEnd::kTakenAway, entry.reason);
  } else if (entry.cause == EndCause::kExpired) {
    jobs_.on_lease_ending(entry.lease.id, Jobs::LeaseEnd::kTimeOver, entry.reason);
  }
}

// A job that nobody watches is not left to go on like that.
void Daemon::stop_job_of(LeaseId lease, const std::string& what) {
  const LeaseEntry* const entry = leases_.find(lease);
  if (!entry || entry->lease.kind != LeaseKind::kJob) return;
  jobs_.on_lease_ending(lease, Jobs::LeaseEnd::kOverLimit, what);
  leases_.end(lease, EndCause::kReleased, what);
}

// What a lease covers is unreserved use without it, and the other way round: known before the GPU is
// given to anybody, not at the next look.
void Daemon::recount_unreserved(const Lease& lease) {
  for (const LeaseGpu& share : lease.gpus) {
    const GpuEntry* const gpu = gpus_.find(share.uuid);
    if (!gpu || gpu->sample.processes.empty()) continue;
    WatchKeeper::Unreserved now = keeper_.unreserved(keeper_.look_at(gpu->sample));
    leases_.set_unreserved_use(share.uuid, now.all, std::move(now.by_user));
  }
}

void Daemon::on_lease_change(const LeaseEntry& entry, bool gone) {
  answers_.changed();
  recount_unreserved(entry.lease);
  tell_job(entry);
  recorder_.on_lease_change(entry, gone);
  turns_.on_lease_change(entry, gone);
  tenants_.on_lease_change(entry, gone);
  if (gone) {
    methods_.on_lease_gone(entry);
    limits_.forget(entry.lease.id);
  } else {
    tenants_.carry_out(grants_.recall_excess(entry.lease.id));
  }
  control_.on_lease_change(entry, gone);
  fillers_.on_lease_change(entry, gone);
  queue_.poke();
}

void Daemon::keep_house() {
  log_.tell_counts();
  answers_.changed();
  if (driver_error_) discover_again();
  const TimePoint now = world_.loop.now();
  // A full disk is known before the next one asks for a lease, and forgotten when there is room.
  if (leases_.store_error() || now - store_checked_ >= kStorePeriod) {
    store_checked_ = now;
    leases_.check_store();
  }
  if (!leases_.store_error()) {
    jobs_.store_again();
    fillers_.store_again();
    recorder_.store_again();
  }
  leases_.follow_processes();
  std::set<pid_t> listed;
  for (const GpuEntry& gpu : gpus_.entries()) {
    for (const GpuProcess& process : gpu.sample.processes) listed.insert(process.pid);
  }
  attribution_.keep_only(listed);
  libraries_.keep_only(listed);
  auto timer = world_.loop.add_timer(world_.loop.now() + kHousekeepingPeriod,
                                     ports::Urgency::kHousekeeping, [this] { keep_house(); });
  if (timer) housekeeping_ = std::move(*timer);
}

void Daemon::record_refusal(LeaseId lease, pid_t pid, const GpuUuid& gpu, Bytes asked) {
  const LeaseEntry* entry = leases_.find(lease);
  if (entry) recorder_.on_refusal(lease, entry->lease.uid, pid, gpu, asked);
}

std::optional<LeaseId> Daemon::lease_of_process(pid_t pid) {
  if (!world_.processes.read_info(pid)) return std::nullopt;
  return attribution_.owner_of(pid).lease;
}

}  // namespace gpurota::daemon
