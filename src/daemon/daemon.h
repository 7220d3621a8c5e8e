// gpurotad, put together: the parts, what follows from each change, and the life of the process.
// State thread only.
#pragma once

#include "config/loaded.h"
#include "daemon/control/control_methods.h"
#include "daemon/control/control_server.h"
#include "daemon/gpus/gpu_finder.h"
#include "daemon/gpus/sampler.h"
#include "daemon/health.h"
#include "daemon/history/booking_events.h"
#include "daemon/history/fair_use.h"
#include "daemon/history/series_keeper.h"
#include "daemon/history/used_gpu_time.h"
#include "daemon/housekeeping.h"
#include "daemon/leases/cdi_specs.h"
#include "daemon/leases/past_bookings.h"
#include "daemon/notices/booking_notices.h"
#include "daemon/notices/booking_warnings.h"
#include "daemon/notices/end_warnings.h"
#include "daemon/notices/lease_notices.h"
#include "daemon/notices/notifier.h"
#include "daemon/orderly_end.h"
#include "daemon/sample_handler.h"
#include "daemon/site_config.h"
#include "daemon/supervised/job_leases.h"
#include "daemon/tenants/lease_charges.h"
#include "daemon/users/users.h"
#include "daemon/users/web_sessions.h"
#include "daemon/watch/strict_access.h"
#include "ipc/unix_socket.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Daemon : private Reloading {
 public:
  // The world, as adapters. All must outlive the daemon.
  struct World {
    ports::EventLoop& loop;
    Sampler::MakeProbe make_probe;
    ports::Store& store;
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
    std::function<std::string()> make_token;
    std::shared_ptr<ports::Accounts> accounts;         // empty: nobody is in any group
    std::function<config::Loaded()> load_config = {};  // for reload()
    ports::History* history = nullptr;        // null: what was is forgotten with the daemon
    ports::ProgramStore* programs = nullptr;  // null: there are no jobs, no fillers
    ports::Durability* durability =
        nullptr;  // of all three; null: what is stored is on the disk at once
    std::function<sys::LongestRounds()> longest_rounds = {};  // of the loop; empty: not told
    // ask() waits so long for the driver, and for the account database, and then fails: a daemon
    // that does not know whose limits hold, or that takes GPUs which it does not see yet for none,
    // must not answer anybody.
    std::chrono::milliseconds patience = std::chrono::minutes(5);
    std::uint64_t descriptors = 65536;  // that this process may have
    ports::ProgramRunner* runner =
        nullptr;  // of [notify]; null: users hear on their terminals only
    std::shared_ptr<ports::SeriesStore> series = {};  // empty: figures end with the daemon
  };
  struct Places {
    std::string control_socket;
    std::string tenant_socket;
    std::string preload;        // libgpurota.so; empty: not found
    mode_t socket_mode = 0600;  // 0666 where everybody may connect; 0660 for the configured group
    std::string audit_directory{};  // empty: no audit log
    std::string runtime_dir{};      // what follows is for jobs
    std::string jobs{};             // directory of their files
    std::string systemd_run{};      // where systemd started us
    std::string keeper{};           // gpurota-keeper; empty: not found
    std::string gpurota{};          // the same
    std::string fillers{};          // directory of their files
    std::string event_spill{};      // file of events that are not stored yet; empty: none
    std::string config_file{};      // the main one
    std::string driver_root{};      // of the driver's dev and proc/driver; empty: the machine's
    std::string device_memory{};    // file: how device files were; empty: they are never touched
    std::string roster{};       // file of who was connected when the last daemon ended; empty: none
    int control_listener = -1;  // listens there already, on behalf of systemd
    int tenant_listener = -1;   // the same
  };

  // `config`: without mistakes.
  Daemon(World world, config::Loaded config, Places places);
  ~Daemon() override;

  // Asks for whom the configuration names, and for the GPUs, and waits for both. Nothing has begun
  // that a daemon which is ended meanwhile would leave undone.
  Result<void> ask();
  // Then: takes up what is stored, opens the sockets. After it the loop may run.
  Result<void> start();
  // Takes nobody in any more, answers what it has been asked, for a moment at most, then calls
  // `done`.
  void finish(std::function<void()> done) { end_.begin(std::move(done)); }
  // Reads the configuration again and takes it over while everything runs. A bad one changes
  // nothing. Reports the changes, also in the log, and those that wait for a restart.
  Result<proto::Reload::Reply> reload() override;
  proto::ShowConfig::Reply show_config(bool everything, const std::string& viewer) override;

 private:
  // A configuration with mistakes: logs them, and makes the error of them.
  Result<proto::Reload::Reply> refuse(const config::Loaded& loaded) const;
  // The dependencies of each of the larger parts.
  LeaseHooks lease_hooks();
  Queue::Parts queue_parts();
  Bookings::Parts bookings_parts();
  TenantServer::Parts tenants_parts();
  LeaseNotices::Parts notices_parts();
  Jobs::Parts jobs_parts();
  Fillers::Parts fillers_parts();
  WatchKeeper::Parts watch_parts();
  Views::Parts views_parts();
  SampleHandler::Parts sample_handler_parts();
  Health::Parts health_parts();
  CallContext call_context();
  Housekeeping::Parts housekeeping_parts();
  // Notifies all parts of a change of a lease, a request or a booking, in the order that is written
  // there, with the reason for it.
  void publish(const LeaseEntry& entry, bool gone);
  void publish(const RequestNews& news);
  void publish(const BookingNews& news);
  // Moves a swap lease to host memory, or lets it take turns again; `why` is recorded.
  void set_aside(LeaseId lease, bool aside, const std::string& why);
  Result<void> restore();
  Result<void> open_sockets();
  ipc::ListenOptions listen_options(int type, int passed) const;
  Supervisor::Parts supervisor_parts();
  // The configuration, or what is known of those whom it names.
  void on_rules_change();
  void on_gpus_found(const std::vector<GpuInfo>& gpus, const std::vector<GpuLink>& links);
  void on_durability(const ports::Durability::News& news);
  bool holds_lease(uid_t uid) const;
  void record(proto::EventType type, const char* message);

  World world_;
  SiteConfig site_;
  const config::Config& config_;
  Places places_;
  UserLog log_;
  UserBudgets budgets_;
  Users users_;
  WebSessions
      sessions_;  // ends after the connections of control_, which tell it that a server is gone
  GpuTable gpus_;
  GpuStates states_;
  GpuFinder finder_;
  Sampler sampler_;
  lease::GrantBook grants_;
  SharedAnswers answers_;
  ControlServer control_;
  Recorder recorder_;
  UsedGpuTime times_;
  FairUse fair_use_;
  LeaseManager leases_;
  LeaseMembers members_;
  Attribution attribution_;
  Allowances allowances_;
  TurnKeeper turns_;
  GpuRooms rooms_;
  Queue queue_;
  PastBookings past_bookings_;
  Bookings bookings_;
  BookingEvents booking_events_;
  Availability availability_;
  LeaseUpdates updates_;
  AutomaticLeases automatic_;
  CdiSpecs cdi_;
  TenantRecords records_;
  SwapTenants swap_;
  TenantRoster roster_;
  TenantServer tenants_;
  LimitKeeper limits_;
  Notifier notifier_;
  LeaseNotices notices_;
  EndWarnings end_warnings_;
  BookingNotices booking_notices_;
  BookingWarnings booking_warnings_;
  Jobs jobs_;
  JobLeases job_leases_;
  Fillers fillers_;
  LibraryReader libraries_;
  WatchKeeper watch_;
  StrictAccess strict_;
  SeriesKeeper series_;
  Views views_;
  SampleHandler sample_handler_;
  Health health_;
  ControlMethods methods_;
  Housekeeping house_;
  OrderlyEnd end_;
  bool serves_ = false;  // start() went well
};

}  // namespace gpurota::daemon
