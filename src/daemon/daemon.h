// gpurotad, put together: the parts, who tells whom, and the life of the process. State thread only.
#pragma once

#include "config/config.h"
#include "daemon/attribution.h"
#include "daemon/automatic_leases.h"
#include "daemon/control_methods.h"
#include "daemon/control_server.h"
#include "daemon/doctor.h"
#include "daemon/fillers.h"
#include "daemon/gpu_table.h"
#include "daemon/jobs.h"
#include "daemon/lease_manager.h"
#include "daemon/library_reader.h"
#include "daemon/limit_keeper.h"
#include "daemon/queue.h"
#include "daemon/recorder.h"
#include "daemon/recovered_memory.h"
#include "daemon/sampler.h"
#include "daemon/swap_tenants.h"
#include "daemon/tenant_server.h"
#include "daemon/turn_keeper.h"
#include "daemon/user_budgets.h"
#include "daemon/user_log.h"
#include "daemon/users.h"
#include "daemon/views.h"
#include "daemon/watch_keeper.h"
#include "ipc/unix_socket.h"
#include "lease/grant_book.h"
#include "sys/round_times.h"
#include "sys/worker.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Daemon {
 public:
  // The world, as adapters. All must outlive the daemon.
  struct World {
    ports::EventLoop& loop;
    Sampler::MakeProbe make_probe;
    ports::Store& store;
    ports::Processes& processes;
    std::function<WallTime()> wall_clock;
    std::function<std::string()> make_token;
    std::shared_ptr<ports::Accounts> accounts;                 // empty: nobody is in any group
    std::function<Result<config::Config>()> load_config = {};  // for reload()
    ports::History* history = nullptr;  // null: what was is forgotten with the daemon
    ports::ProgramStore* programs = nullptr;  // null: there are no jobs, no fillers
    ports::Durability* durability =
        nullptr;  // of all three; null: what is stored is on the disk at once
    std::function<sys::LongestRounds()> longest_rounds = {};  // of the loop; empty: not told
    // ask() waits so long for the driver, and for the account database, and then fails: a daemon that does not know whose
    // limits hold, or that takes GPUs which it does not see yet for none, must not answer anybody.
    std::chrono::milliseconds patience = std::chrono::minutes(5);
    std::uint64_t descriptors = 65536;  // that this process may have
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
  };

  Daemon(World world, config::Config config, Places places);
  ~Daemon();

  // Asks for whom the configuration names, and for the GPUs, and waits for both. Nothing has begun that a
  // daemon which is ended meanwhile would leave undone.
  Result<void> ask();
  // Then: takes up what is stored, opens the sockets. After it the loop may run.
  Result<void> start();
  // Reads the configuration again and takes it over while everything runs. A bad one changes
  // nothing. What cannot change so is said in the log and waits for a restart.
  Result<void> reload();

 private:
  ipc::ListenOptions listen_options(int type) const;
  Supervisor::Parts supervisor_parts();
  // The configuration, or what is known of those whom it names.
  void on_rules_change();
  // What the driver says of itself and of the GPUs.
  struct Machine {
    ports::DriverInfo driver;
    std::vector<GpuInfo> gpus;
    std::vector<GpuLink> links;
  };
  static constexpr const char* kDriverHangs =
      "the NVIDIA driver has been asked for its GPUs and does not answer: if it goes on so, see "
      "the kernel's log (`dmesg`) and reboot";
  static Result<Machine> ask_driver(ports::GpuProbe& probe);
  // Asks the driver, unless it is being asked. False: it has not answered within `patience`; it may later.
  bool discover(std::chrono::milliseconds patience);
  void discover_again();
  void on_discovery(Result<Machine> machine);
  void no_gpus(Error why);
  void on_sample(GpuSample sample, TimePoint taken);
  // What the processes of a sample mean: whose they are.
  struct Shares {
    std::map<LeaseId, Bytes> outsiders;
    std::map<LeaseId, Bytes> used;          // by all of a lease's processes
    std::map<pid_t, Bytes> by_process;      // of leases
    std::map<pid_t, Bytes> swap_outsiders;  // of `outsiders`, of swap leases
  };
  Shares share_out(const watch::Look& look);
  void record_state(const GpuEntry& gpu, const std::string& error);
  Duration period_of(const GpuUuid& gpu) const;
  void notify(LeaseId lease, const std::string& message);
  bool holds_memory(LeaseId lease) const;
  bool holds_lease(uid_t uid) const;
  bool hurried(const GpuUuid& gpu) const;
  std::optional<bool> holds_memory(const Lease& lease, pid_t pid) const;
  void recount_unreserved(const Lease& lease);
  void on_lease_change(const LeaseEntry& entry, bool gone);
  void tell_job(const LeaseEntry& entry);
  void stop_job_of(LeaseId lease, const std::string& what);
  void keep_house();
  std::vector<proto::Check> doctor(uid_t viewer);
  // Of each budget, by the user who uses most of it; to others than administrators only what they use.
  std::vector<Examination::Use> budgets(uid_t viewer);
  proto::Health::Reply health() const;
  std::optional<Error> store_error() const {
    return leases_.store_error() ? leases_.store_error() : disk_error_;
  }
  // GPU time of a user since then, ended leases included. Empty: no history is kept.
  std::optional<std::chrono::seconds> gpu_time_of(uid_t uid, WallTime from);
  std::optional<LeaseId> lease_of_process(pid_t pid);
  watch::Library library_of(const watch::SeenProcess& process);
  // A tenant of the lease asked for memory, and was refused.
  void record_refusal(LeaseId lease, pid_t pid, const GpuUuid& gpu, Bytes asked);

  World world_;
  std::shared_ptr<ports::GpuProbe> probe_;  // discovery_ alone uses it, and may outlive us
  sys::Worker discovery_;
  config::Config config_;
  WallTime since_;
  Places places_;
  UserLog log_;
  UserBudgets budgets_;
  GpuTable gpus_;
  lease::GrantBook grants_;
  std::optional<ports::DriverInfo> driver_;
  std::optional<Error> driver_error_;
  std::optional<Error> disk_error_;  // what was stored last may not be on the disk
  RecoveredMemory recovered_;
  SharedAnswers answers_;
  std::map<uid_t, std::chrono::seconds> gpu_times_;  // as last read of the history
  std::map<GpuUuid, std::set<LeaseId>> holders_;  // leases with memory, by GPU, from the last look
  Users users_;
  Recorder recorder_;
  LeaseManager leases_;
  Queue queue_;
  Attribution attribution_;
  AutomaticLeases automatic_;
  LimitKeeper limits_;
  TurnKeeper turns_;
  SwapTenants swap_;
  TenantServer tenants_;
  LibraryReader libraries_;
  WatchKeeper keeper_;
  Views views_;
  Jobs jobs_;
  Fillers fillers_;
  ControlMethods methods_;
  ControlServer control_;
  Sampler sampler_;
  ports::EventLoop::SourcePtr housekeeping_;
  TimePoint store_checked_{};
  TimePoint driver_asked_{};
  bool serves_ = false;  // start() went well
};

}  // namespace gpurota::daemon
