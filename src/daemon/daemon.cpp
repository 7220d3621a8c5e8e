#include "daemon/daemon.h"

#include "base/log.h"
#include "daemon/leases/container_folder.h"
#include "daemon/leases/context_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

// How long a reload waits for the account database. If the database answers in this time, the new
// configuration takes effect at once.
constexpr std::chrono::milliseconds kReloadPatience{50};

// Logs the mistakes of a configuration and returns them as an error.
Result<proto::Reload::Reply> refuse(const config::Loaded& loaded) {
  for (const config::Problem& mistake : loaded.mistakes) log::error(to_string(mistake));
  const std::size_t count = loaded.mistake_count();
  const std::string what =
      count == 1 ? std::string("a mistake") : fmt::format("{} mistakes", count);
  log::error(fmt::format("the new configuration has {} and is refused, the old one stays in effect",
                         what));
  return fail(Code::kInvalid,
              fmt::format("the configuration has {}, and the old settings stay in effect:\n{}",
                          what, config::mistakes_text(loaded)));
}

}  // namespace

// Each part may refer to the parts above it here. A part calls the parts below it through
// functions, and only when all parts exist. Parts read leases, requests and bookings from
// `tables_`.
Daemon::Daemon(World world, config::Loaded config, Places places)
    : world_(std::move(world)),
      site_(std::move(config), places.config_file),
      config_(site_.config()),
      places_(std::move(places)),
      log_([] { return std::chrono::steady_clock::now(); }),
      budgets_({config_, world_.descriptors, ::geteuid(),
                [this](uid_t uid) { return holds_lease(uid); },
                [this] { return world_.loop.now(); }}),
      users_(world_.loop, world_.accounts, config_, ::geteuid(), [this] { on_rules_change(); }),
      sessions_({world_.loop, config_, users_, world_.make_token, world_.wall_clock}),
      gpus_({}),
      states_(world_.store, gpus_),
      finder_(world_.loop, world_.make_probe(), world_.patience,
              [this](const auto& gpus, const auto& links) { on_gpus_found(gpus, links); }),
      sampler_(world_.loop, world_.make_probe, config_.watch_period),
      control_({world_.loop, config_, budgets_, world_.durability}),
      recorder_({world_.loop, world_.history, places_.audit_directory, config_, world_.processes,
                 gpus_, world_.wall_clock, [this] { control_.on_event(); }, &users_,
                 places_.event_spill, world_.durability}),
      times_(recorder_, config_, world_.wall_clock),
      fair_use_({world_.loop, world_.processes, recorder_, config_, users_, world_.wall_clock,
                 [this] { queue_.poke(); }}),
      leases_(tables_, {world_.loop, world_.store, world_.processes, gpus_, states_, grants_,
                        config_, world_.wall_clock, world_.make_token, sampler_, lease_hooks()}),
      attribution_(world_.processes, tables_),
      allowances_({tables_, gpus_, config_, users_, budgets_,
                   [this](uid_t uid, WallTime from) { return times_.gpu_time_of(uid, from); },
                   world_.wall_clock}),
      turns_({world_.loop, config_, gpus_, states_, tables_, leases_, recorder_, users_, control_,
              [this] { fillers_.on_turns_change(); }}),
      rooms_({tables_, gpus_, states_, grants_, world_.processes, config_, turns_,
              [this](LeaseId filler) { return fillers_.stay_of(filler); }}),
      order_({tables_, states_, world_.processes, config_, world_.wall_clock, fair_use_, users_}),
      queue_(tables_, queue_parts()),
      past_bookings_({world_.history, tables_, gpus_, world_.wall_clock}),
      bookings_(tables_, bookings_parts()),
      booking_events_(recorder_, gpus_),
      availability_({tables_, order_, rooms_, allowances_, config_, world_.wall_clock}),
      updates_({tables_, leases_, rooms_, allowances_, config_, world_.wall_clock}),
      automatic_(
          {queue_, tables_, leases_, attribution_, world_.processes, gpus_, config_, users_}),
      cdi_({world_.loop, config_, gpus_, tables_, world_.processes, places_.tenant_socket,
            places_.preload, places_.driver_root, ::geteuid() == 0}),
      records_(tables_, recorder_),
      swap_({world_.loop, world_.processes, turns_, grants_, config_, users_, sampler_, records_}),
      roster_(places_.roster),
      tenants_(tenants_parts()),
      parker_(park_parts()),
      limits_({tables_, leases_, grants_, config_, control_, turns_}),
      notifier_({world_.loop, world_.runner, world_.processes, config_, world_.wall_clock}),
      notices_(notices_parts()),
      end_warnings_({world_.loop, tables_, leases_, control_, world_.wall_clock}),
      booking_notices_({gpus_, notifier_, world_.wall_clock}),
      booking_warnings_(
          {world_.loop, world_.processes, config_, gpus_, tables_, control_, notifier_,
           world_.wall_clock,
           [this](const BookingEntry& booking) { return bookings_.leaving_for(booking); }}),
      jobs_(jobs_parts()),
      job_leases_(tables_, leases_, jobs_),
      fillers_(fillers_parts()),
      libraries_(world_.loop, places_.tenant_socket),
      watch_(watch_parts()),
      strict_({world_.loop, config_, gpus_, tables_, users_, world_.processes, recorder_,
               places_.driver_root, places_.device_memory}),
      driver_limits_(driver_limits_parts()),
      series_({world_.loop, gpus_, tables_,
               [this](LeaseId lease) { return turns_.figures_of(lease); }, world_.wall_clock,
               world_.series}),
      views_(views_parts()),
      sample_handler_(sample_handler_parts()),
      health_(health_parts()),
      methods_(call_context()),
      house_(housekeeping_parts()),
      end_(world_.loop, control_, roster_, grants_) {
  sampler_.set_listener(sample_handler_);
  world_.processes.set_admission([this](uid_t uid) -> Result<std::shared_ptr<void>> {
    GPUROTA_ASSIGN_OR_RETURN(UserBudgets::Held held, budgets_.take(uid, Budget::kDescriptors));
    return std::make_shared<UserBudgets::Held>(std::move(held));
  });
}

LeaseHooks Daemon::lease_hooks() {
  return {.publish = [this](const LeaseEntry& entry, bool gone) { publish(entry, gone); },
          .check_new =
              [this](const LeaseEntry& entry) {
                const auto checked = turns_.check_new(entry.lease);
                return checked ? driver_limits_.check_new(entry) : checked;
              },
          .holds_memory =
              [this](LeaseId lease) {
                return tenants_.holds_memory(lease) || sample_handler_.holds_memory(lease);
              },
          .end_of_command =
              [this](const LeaseEntry& entry) { return job_leases_.end_of_command(entry); },
          .grace_of = [this](const LeaseEntry& entry) { return fillers_.grace_of(entry); },
          .on_time_over = [this](const ports::ProcessId& holder,
                                 const std::string& why) { jobs_.on_time_over(holder, why); },
          .on_moved = [this] { control_.repeat_calls(CallEvent::kMove); }};
}

// The calls below may end this lease or another one. All consequences of such an end are carried
// out before the remaining calls.
void Daemon::publish(const LeaseEntry& entry, bool gone) {
  // Discards the shared answers before anybody is notified, because a notified client may ask for
  // the lease at once.
  answers_.changed();
  // Before anybody is notified of the lease, its device files can be opened, and container engines
  // find its specification.
  strict_.on_lease_change(entry, gone);
  driver_limits_.on_lease_change(entry, gone);
  cdi_.on_lease_change(entry, gone);
  // GPU use that the lease covers must not count as unreserved when the parts below place leases.
  watch_.on_lease_change(entry, gone);
  // A job gets the reason for the end of its run before it sees the end.
  job_leases_.on_lease_change(entry, gone);
  // Fair share reads the use of the lease before the recorder closes the lease.
  fair_use_.on_lease_change(entry, gone);
  // The event of the change comes before the events that follow from it.
  recorder_.on_lease_change(entry, gone);
  // Turns decide on the lease's memory before its tenants get their limits.
  turns_.on_lease_change(entry, gone);
  // The lease's tenants get their limits before anybody else gets the memory.
  tenants_.on_lease_change(entry, gone);
  parker_.on_lease_change(entry, gone);
  if (gone) aside_.erase(entry.lease.id);
  // Clients that ask about the lease find its end before its holders are notified.
  methods_.on_lease_change(entry, gone);
  limits_.on_lease_change(entry, gone);
  // The lease's holders get its new state first, and then who changed it.
  control_.on_lease_change(entry, gone);
  end_warnings_.on_lease_change(entry, gone);
  notices_.on_lease_change(entry, gone);
  // A filler may now start, or has ended.
  fillers_.on_lease_change(entry, gone);
  // Queue and bookings decide later, when all parts above have released what they had.
  queue_.poke();
  bookings_.on_lease_change();
  past_bookings_.on_lease_change(entry, gone);
}

void Daemon::publish(const RequestNews& news) {
  const QueueEntry& request = news.request;
  // The recorder is notified first, because a client that is notified may ask for the event at
  // once.
  switch (news.step) {
    case RequestStep::kWaits:
      recorder_.on_request(request);
      control_.on_request(request);
      break;
    case RequestStep::kGranted:
      recorder_.on_request_granted(request, *news.lease);
      control_.on_request_granted(request, *news.lease);
      break;
    case RequestStep::kGone:
      recorder_.on_request_gone(request, *news.why);
      control_.on_request_gone(request, *news.why);
      notices_.on_request_gone(request, *news.why);
      break;
  }
}

void Daemon::publish(const BookingNews& news) {
  // Discards the shared answers before anybody is notified, because a notified client may ask for
  // the booking at once.
  answers_.changed();
  past_bookings_.on_booking(news);
  booking_events_.on_booking(news);
  booking_notices_.on_booking(news);
  booking_warnings_.on_booking(news);
}

Bookings::Parts Daemon::bookings_parts() {
  return {.loop = world_.loop,
          .store = world_.store,
          .processes = world_.processes,
          .leases = leases_,
          .gpus = gpus_,
          .queue = queue_,
          .order = order_,
          .rooms = rooms_,
          .allowances = allowances_,
          .config = config_,
          .wall_clock = world_.wall_clock,
          .publish = [this](const BookingNews& news) { publish(news); },
          .stay_of = [this](LeaseId lease) { return turns_.stay_of(lease); },
          .set_aside = [this](LeaseId lease, bool aside,
                              const std::string& why) { set_aside(lease, aside, why); }};
}

void Daemon::set_aside(LeaseId lease, bool aside, const std::string& why) {
  if (aside) {
    aside_.insert(lease);
  } else {
    aside_.erase(lease);
  }
  turns_.set_aside(lease, aside || parker_.keeps_aside(lease));
  Recorder::Event event;
  event.type = proto::EventType::kLeaseUpdated;
  event.lease = lease;
  event.uid = tables_.leases.at(lease).lease.uid;
  event.message = why;
  recorder_.record(std::move(event));
}

Queue::Parts Daemon::queue_parts() {
  return {.loop = world_.loop,
          .store = world_.store,
          .processes = world_.processes,
          .leases = leases_,
          .gpus = gpus_,
          .states = states_,
          .rooms = rooms_,
          .allowances = allowances_,
          .order = order_,
          .config = config_,
          .wall_clock = world_.wall_clock,
          .publish = [this](const RequestNews& news) { publish(news); },
          .on_settled = [this] { answers_.changed(); },
          .move_out = [this](LeaseId filler,
                             const std::string& why) { fillers_.move_out(filler, why); }};
}

TenantServer::Parts Daemon::tenants_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .tables = tables_,
          .leases = leases_,
          .grants = grants_,
          .config = config_,
          .budgets = budgets_,
          .automatic = automatic_,
          .swap = swap_,
          .gpus = gpus_,
          .samples = sampler_,
          .attribution = attribution_,
          .records = records_,
          .roster = roster_,
          .durability = world_.durability,
          .on_connected = [this](const Tenant& tenant) { parker_.on_connected(tenant); },
          .on_park_ready =
              [this](const Tenant& tenant, const gpurota_msg_park_ready& ready) {
                parker_.on_ready(tenant, ready);
              }};
}

ParkKeeper::Parts Daemon::park_parts() {
  const std::string user = ::geteuid() == 0 ? "root" : std::string();
  return {
      .loop = world_.loop,
      .tables = tables_,
      .leases = leases_,
      .turns = turns_,
      .tenants = tenants_.table(),
      .processes = world_.processes,
      .samples = sampler_,
      .recorder = recorder_,
      .checks = ParkChecks({.config = config_,
                            .gpus = gpus_,
                            .driver = finder_.driver(),
                            .tenants = tenants_.table(),
                            .attribution = attribution_,
                            .processes = world_.processes}),
      .room = ReturnRoom({.tables = tables_,
                          .gpus = gpus_,
                          .rooms = rooms_,
                          .queue = queue_,
                          .processes = world_.processes,
                          .config = config_,
                          .wall_clock = world_.wall_clock}),
      .runner = world_.runner,
      .program = {.file = places_.park,
                  .lock = places_.runtime_dir + "/park.lock",
                  .library = places_.driver_library,
                  .user = user},
      .set_aside = [this](LeaseId lease,
                          bool aside) { turns_.set_aside(lease, aside || aside_.contains(lease)); },
      .on_change =
          [this] {
            answers_.changed();
            control_.repeat_calls(CallEvent::kPark);
          }};
}

LeaseNotices::Parts Daemon::notices_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .config = config_,
          .gpus = gpus_,
          .owners = control_,
          .listener = notifier_,
          .wall_clock = world_.wall_clock};
}

Jobs::Parts Daemon::jobs_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .supervisor = supervisor_parts(),
          .wall_clock = world_.wall_clock,
          .grace = [this] { return Duration(config_.grace); },
          .directory = places_.jobs,
          .on_end = [this](uid_t owner, NoticeKind kind, const std::string& job,
                           const std::string& why) { notices_.on_job_end(owner, kind, job, why); }};
}

Fillers::Parts Daemon::fillers_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .supervisor = supervisor_parts(),
          .config = config_,
          .gpus = gpus_,
          .tables = tables_,
          .leases = leases_,
          .turns = turns_,
          .recorder = recorder_,
          .queue = queue_,
          .states = states_,
          .availability = availability_,
          .samples = sampler_,
          .wall_clock = world_.wall_clock,
          .directory = places_.fillers};
}

WatchKeeper::Parts Daemon::watch_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .config = config_,
          .gpus = gpus_,
          .tables = tables_,
          .attribution = attribution_,
          .recorder = recorder_,
          .states = states_,
          .tenants = tenants_.table(),
          .owners = control_,
          .enforcement = job_leases_,
          .samples = sampler_,
          .groups = users_,
          .notices = notifier_,
          .libraries = &libraries_,
          .read_container = container_reader(places_.driver_root),
          .charge_of = LeaseCharges(grants_, turns_),
          .counted_again = [this](const GpuUuid& gpu) { return grants_.counted_by_several(gpu); },
          .wall_clock = world_.wall_clock};
}

Views::Parts Daemon::views_parts() {
  return {.config = config_,
          .processes = world_.processes,
          .gpus = gpus_,
          .tables = tables_,
          .order = order_,
          .availability = availability_,
          .grants = grants_,
          .tenants = tenants_.table(),
          .latency = tenants_.latency(),
          .held_back = tenants_.held_back(),
          .attribution = attribution_,
          .users = users_,
          .watch = watch_,
          .turns = turns_,
          .driver_limits = driver_limits_,
          .parker = parker_,
          .states = states_,
          .loop = world_.loop,
          .wall_clock = world_.wall_clock};
}

DriverLimits::Parts Daemon::driver_limits_parts() {
  return {.loop = world_.loop,
          .config = config_,
          .gpus = gpus_,
          .tables = tables_,
          .processes = world_.processes,
          .driver = finder_.driver(),
          .make_probe = world_.make_probe,
          .end = [this](LeaseId lease,
                        const std::string& why) { leases_.end(lease, EndCause::kReleased, why); },
          .on_change =
              [this] {
                answers_.changed();
                control_.repeat_calls(CallEvent::kLimit);
              },
          .file = places_.driver_limits};
}

SampleHandler::Parts Daemon::sample_handler_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .config = config_,
          .gpus = gpus_,
          .states = states_,
          .grants = grants_,
          .driver = finder_.driver(),
          .tables = tables_,
          .leases = leases_,
          .queue = queue_,
          .recorder = recorder_,
          .turns = turns_,
          .swap = swap_,
          .tenants = tenants_,
          .limits = limits_,
          .watch = watch_,
          .fillers = fillers_,
          .jobs = jobs_,
          .answers = answers_,
          .series = series_,
          .on_sample = [this] { control_.repeat_calls(CallEvent::kSample); }};
}

Health::Parts Daemon::health_parts() {
  return {.loop = world_.loop,
          .processes = world_.processes,
          .site = site_,
          .users = users_,
          .driver = finder_.driver(),
          .gpus = gpus_,
          .sampler = sampler_,
          .tables = tables_,
          .leases = leases_,
          .recorder = recorder_,
          .budgets = budgets_,
          .automatic = automatic_,
          .cdi = cdi_,
          .tenants = tenants_.table(),
          .records = records_,
          .turns = turns_,
          .watch = watch_,
          .strict = strict_,
          .driver_limits = driver_limits_,
          .views = views_,
          .sample_handler = sample_handler_,
          .series = series_,
          .preload = places_.preload,
          .longest_rounds = world_.longest_rounds};
}

CallContext Daemon::call_context() {
  return {.tables = tables_,
          .leases = leases_,
          .queue = queue_,
          .availability = availability_,
          .gpus = gpus_,
          .views = views_,
          .tenant_socket = places_.tenant_socket,
          .preload = places_.preload,
          .config_file = places_.config_file,
          .driver = finder_.driver(),
          .self = health_,
          .reloading = *this,
          .samples = sampler_,
          .recorder = recorder_,
          .states = states_,
          .rooms = rooms_,
          .allowances = allowances_,
          .updates = updates_,
          .users = users_,
          .grants = grants_,
          .wall_clock = world_.wall_clock,
          .jobs = jobs_,
          .processes = world_.processes,
          .fillers = fillers_,
          .answers = answers_,
          .turns = turns_,
          .config = config_,
          .bookings = bookings_,
          .cdi = cdi_,
          .notifier = notifier_,
          .series = series_,
          .wake_streams = [this] { control_.on_event(); },
          .sessions = sessions_,
          .driver_limits = driver_limits_,
          .parker = parker_};
}

Housekeeping::Parts Daemon::housekeeping_parts() {
  return {.loop = world_.loop,
          .log = log_,
          .gpus = gpus_,
          .finder = finder_,
          .tables = tables_,
          .leases = leases_,
          .attribution = attribution_,
          .libraries = libraries_,
          .recorder = recorder_,
          .jobs = jobs_,
          .fillers = fillers_,
          .answers = answers_,
          .health = health_};
}

Daemon::~Daemon() {
  if (world_.durability) world_.durability->on_news({});
  world_.processes.set_admission({});
  if (serves_) record(proto::EventType::kDaemonStopped, "gpurotad has stopped");
}

void Daemon::record(proto::EventType type, const char* message) {
  Recorder::Event event;
  event.type = type;
  event.message = message;
  recorder_.record(std::move(event));
}

Result<void> Daemon::ask() {
  log::info("asking the account database for the names of the configuration");
  if (!users_.resolve(world_.patience, site_.named())) {
    return fail(
        Code::kUnavailable,
        "the account database does not answer, and without it administrators and users' limits are "
        "unknown: find out why (`getent passwd root`), then start gpurotad again");
  }
  if (const auto& group = users_.socket_group(); group && !*group) {
    return tl::unexpected(group->error());
  }
  log::info("asking the driver for its GPUs");
  if (!finder_.ask()) return fail(Code::kUnavailable, GpuFinder::kDriverHangs);
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

ipc::ListenOptions Daemon::listen_options(int type, int passed) const {
  ipc::ListenOptions options{type, places_.socket_mode, {}, 256, passed};
  if (const auto& group = users_.socket_group()) {
    options.mode = 0660;
    options.group = **group;
  }
  return options;
}

Result<void> Daemon::start() {
  health_.on_start(world_.wall_clock());
  grants_.set_throttle(LimitKeeper::throttle(config_));
  GPUROTA_TRY(restore());
  strict_.start();
  driver_limits_.start();
  GPUROTA_TRY(open_sockets());
  cdi_.start();
  GPUROTA_TRY(jobs_.restore());
  job_leases_.restore();
  GPUROTA_TRY(fillers_.restore());
  house_.run();
  series_.start();
  serves_ = true;
  record(proto::EventType::kDaemonStarted, "gpurotad has started");
  return {};
}

Result<void> Daemon::restore() {
  GPUROTA_TRY(leases_.restore());
  const DriverState& driver = finder_.driver();
  if (driver.info) recall_context_costs(gpus_, states_, driver.info->driver_version, grants_);
  GPUROTA_TRY(queue_.restore());
  GPUROTA_TRY(bookings_.restore());
  past_bookings_.restore();
  watch_.restore();
  GPUROTA_TRY(recorder_.start(tables_.leases));
  fair_use_.start();
  notices_.restore(tables_.leases);
  end_warnings_.restore();
  booking_warnings_.restore();
  if (world_.durability) {
    world_.durability->on_news(
        [this](const ports::Durability::News& news) { on_durability(news); });
  }
  // Programs that held memory under the last daemon connect again within reconnect_grace. Until
  // then no other process of their lease is granted memory that they may still hold.
  const TimePoint now = world_.loop.now();
  const TimePoint settled = tables_.leases.empty() ? now : now + config_.reconnect_grace;
  roster_.load(world_.processes, now, settled);
  for (const auto& [id, entry] : tables_.leases) {
    grants_.hold_until(id, settled);
    for (const LeaseGpu& gpu : entry.lease.gpus) sampler_.sample_soon(gpu.uuid);
  }
  turns_.restore(settled);
  parker_.restore();
  return {};
}

Result<void> Daemon::open_sockets() {
  GPUROTA_TRY(tenants_.listen(places_.tenant_socket,
                              listen_options(SOCK_SEQPACKET, places_.tenant_listener)));
  offer_to_containers(places_.tenant_socket, places_.preload);
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  return control_.listen(methods_, places_.control_socket,
                         listen_options(SOCK_STREAM, places_.control_listener));
}

Result<proto::Reload::Reply> Daemon::reload() {
  if (!world_.load_config) return fail(Code::kUnavailable, "there is no configuration file");
  config::Loaded loaded = world_.load_config();
  if (loaded.mistake_count() > 0) return refuse(loaded);
  proto::Reload::Reply reply{.changes = std::vector<proto::ConfigChange>(),
                             .warnings = std::vector<proto::ConfigProblem>()};
  for (const config::Change& change : site_.take_over(std::move(loaded))) {
    log::info(to_string(change));
    reply.changes->push_back(proto_change(change));
  }
  if (users_.resolve(kReloadPatience, site_.named())) {
    for (const config::Problem& problem : users_.unknown()) {
      reply.warnings->push_back(proto_problem(problem));
    }
  } else {
    proto::ConfigProblem& later = reply.warnings->emplace_back();
    later.message = "the account database does not answer yet; the log will say whom it lacks";
  }
  notices_.on_config_change();
  booking_warnings_.on_config_change();
  sampler_.set_period(config_.watch_period);
  grants_.set_throttle(LimitKeeper::throttle(config_));
  tenants_.latency().refresh();
  on_rules_change();
  GPUROTA_TRY(automatic_.publish(places_.tenant_socket));
  log::info("the configuration has been read again", {{"changes", reply.changes->size()}});
  record(proto::EventType::kConfigReloaded, "the configuration has been read again");
  return reply;
}

proto::ShowConfig::Reply Daemon::show_config(bool everything, const std::string& viewer) {
  proto::ShowConfig::Reply reply = site_.show(gpus_, states_, everything, viewer);
  for (const config::Problem& problem : users_.unknown()) {
    if (everything) reply.warnings.push_back(proto_problem(problem));
  }
  return reply;
}

void Daemon::on_rules_change() {
  answers_.changed();
  turns_.refresh();
  swap_.update_terms();
  strict_.refresh();
  driver_limits_.refresh();
  if (serves_) cdi_.refresh();
  fair_use_.start();
  queue_.poke();
}

void Daemon::on_gpus_found(const std::vector<GpuInfo>& gpus, const std::vector<GpuLink>& links) {
  gpus_ = GpuTable(gpus, links);
  rooms_.set_topology(Topology(links));
  answers_.changed();
  recall_context_costs(gpus_, states_, finder_.driver().info->driver_version, grants_);
  recorder_.on_gpus_found(tables_.leases);
  for (const GpuInfo& info : gpus) sampler_.watch(info);
  turns_.refresh();
  strict_.refresh();
  driver_limits_.refresh();
  if (serves_) cdi_.refresh();
  queue_.poke();
}

void Daemon::on_durability(const ports::Durability::News& news) {
  health_.set_disk_error(news.error);
  recorder_.on_durability(news);
  control_.on_durability(news);
  tenants_.on_durability(news);
}

bool Daemon::holds_lease(uid_t uid) const {
  return std::any_of(tables_.leases.begin(), tables_.leases.end(),
                     [&](const auto& entry) { return entry.second.lease.uid == uid; });
}

}  // namespace gpurota::daemon
