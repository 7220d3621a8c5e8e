// The whole daemon: makes its parts, notifies them of each change, and starts and ends them. State
// thread only.
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
#include "daemon/tenants/park_keeper.h"
#include "daemon/users/users.h"
#include "daemon/users/web_sessions.h"
#include "daemon/watch/driver_limits.h"
#include "daemon/watch/strict_access.h"
#include "ipc/unix_socket.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Daemon : private Reloading {
 public:
  // The adapters to everything outside the daemon. All must outlive the daemon.
  struct World {
    ports::EventLoop& loop;
    Sampler::MakeProbe make_probe;
    ports::Store& store;
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
    std::function<std::string()> make_token;
    std::shared_ptr<ports::Accounts> accounts;         // empty: nobody is in any group
    std::function<config::Loaded()> load_config = {};  // for reload()
    ports::History* history = nullptr;                 // null: no history is stored
    ports::ProgramStore* programs = nullptr;           // null: there are no jobs and no fillers
    ports::Durability* durability =
        nullptr;  // of the three stores; null: each write is on the disk at once
    std::function<sys::LongestRounds()> longest_rounds = {};  // of the loop; empty: not reported
    // How long ask() waits for the account database, and then for the driver, before it fails.
    // Without their answers the daemon must not serve anybody: it would not know which limits apply
    // to a user, or would report GPUs as missing that it has not seen yet.
    std::chrono::milliseconds patience = std::chrono::minutes(5);
    std::uint64_t descriptors = 65536;  // file descriptors that this process may have
    ports::ProgramRunner* runner =
        nullptr;  // runs the programs of [notify]; null: users get notices on their terminals only
    std::shared_ptr<ports::SeriesStore> series = {};  // empty: figures are lost with the daemon
  };
  struct Places {
    std::string control_socket;
    std::string tenant_socket;
    std::string preload;        // libgpurota.so; empty: not found
    mode_t socket_mode = 0600;  // 0666 where everybody may connect; 0660 for the configured group
    std::string audit_directory{};  // empty: no audit log
    std::string runtime_dir{};      // for jobs and fillers
    std::string jobs{};             // directory of their files
    std::string systemd_run{};      // path; empty: jobs are not units
    std::string keeper{};           // gpurota-keeper; empty: not found
    std::string gpurota{};          // the command; empty: not found
    std::string park{};             // gpurota-park; empty: not found
    std::string driver_library{};   // libcuda of driver_root; empty: where the loader finds it
    std::string fillers{};          // directory of their files
    std::string event_spill{};      // file of events that are not stored yet; empty: none
    std::string config_file{};      // the main file
    std::string driver_root{};      // folder with the driver's dev and proc/driver; empty: "/"
    std::string device_memory{};    // file of original device ACLs; empty: they are never changed
    std::string driver_limits{};    // file of limits that the driver was given; empty: none
    std::string roster{};           // file of tenants that the last daemon had; empty: none
    int control_listener = -1;      // listening socket that systemd passed; -1: none
    int tenant_listener = -1;       // the same
  };

  // `config` must have no mistakes.
  Daemon(World world, config::Loaded config, Places places);
  ~Daemon() override;

  // Asks the account database for the accounts that the configuration names, and the driver for the
  // GPUs, and waits for both. The process may be ended meanwhile: there is nothing to clean up yet.
  Result<void> ask();
  // Call after ask(): restores what is stored and opens the sockets. The loop may run afterwards.
  Result<void> start();
  // Accepts no more connections, answers the calls received so far, and calls `done` after a second
  // at the latest.
  void finish(std::function<void()> done) { end_.begin(std::move(done)); }
  // Reads the configuration again and puts it into effect while everything runs. A configuration
  // with mistakes changes nothing. Returns and logs all changes, including those that take effect
  // only at the next restart.
  Result<proto::Reload::Reply> reload() override;
  proto::ShowConfig::Reply show_config(bool everything, const std::string& viewer) override;

 private:
  // The dependencies of each of the larger parts.
  LeaseHooks lease_hooks();
  Queue::Parts queue_parts();
  Bookings::Parts bookings_parts();
  TenantServer::Parts tenants_parts();
  ParkKeeper::Parts park_parts();
  LeaseNotices::Parts notices_parts();
  Jobs::Parts jobs_parts();
  Fillers::Parts fillers_parts();
  WatchKeeper::Parts watch_parts();
  Views::Parts views_parts();
  SampleHandler::Parts sample_handler_parts();
  DriverLimits::Parts driver_limits_parts();
  Health::Parts health_parts();
  CallContext call_context();
  Housekeeping::Parts housekeeping_parts();
  // Notify all parts of a change of a lease, a request or a booking. The order matters: the
  // definitions give the reasons.
  void publish(const LeaseEntry& entry, bool gone);
  void publish(const RequestNews& news);
  void publish(const BookingNews& news);
  // Moves a swap lease to host memory, or lets it take turns again; `why` is recorded.
  void set_aside(LeaseId lease, bool aside, const std::string& why);
  Result<void> restore();
  Result<void> open_sockets();
  ipc::ListenOptions listen_options(int type, int passed) const;
  Supervisor::Parts supervisor_parts();
  // Call when the configuration has changed, or the accounts that the configuration names.
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
  LeaseTables tables_;  // destroyed before budgets_, which counts its descriptors
  Users users_;
  WebSessions
      sessions_;  // outlives control_, whose connections remove their web servers as they end
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
  Attribution attribution_;
  Allowances allowances_;
  TurnKeeper turns_;
  GpuRooms rooms_;
  QueueOrder order_;
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
  ParkKeeper parker_;
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
  DriverLimits driver_limits_;
  SeriesKeeper series_;
  Views views_;
  SampleHandler sample_handler_;
  Health health_;
  ControlMethods methods_;
  Housekeeping house_;
  OrderlyEnd end_;
  std::set<LeaseId> aside_;  // in host memory because of a booking: set_aside()
  bool serves_ = false;      // start() succeeded
};

}  // namespace gpurota::daemon
