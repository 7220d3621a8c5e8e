// Parks leases, and brings them back (docs/design/park.md). State thread only; nothing here waits.
//
//   park:    a swap lease goes to host memory ──► each process closes (PARK, PARK_READY) ──►
//            gpurota-park ──► parked
//   unpark:  its memory has room ──► each process closes again ──► gpurota-park ──► the processes
//            run ──► turns again
//
// The memory of a parked lease does not count on its GPUs. If there is no room for that memory when
// the lease is to come back, the lease waits: its memory counts from then on, and the lease is
// brought back as soon as there is room (park_wishes.h).
//
// The state of the lease is stored before each of these ways begins and after it has ended, with
// the processes concerned. A new daemon brings back the processes of a lease that it finds on the
// way. A process that may be locked is never told to run before gpurota-park has unlocked it.
#pragma once

#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/tenants/park_checks.h"
#include "daemon/tenants/park_program.h"
#include "daemon/tenants/park_wishes.h"
#include "daemon/tenants/turn_keeper.h"
#include "ports/event_loop.h"
#include "ports/program_runner.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

class ParkKeeper {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const LeaseTables& tables;
    LeaseManager& leases;
    TurnKeeper& turns;
    const TenantTable& tenants;
    ports::Processes& processes;
    Samples& samples;
    Recorder& recorder;
    ParkChecks checks;
    ReturnRoom room;
    ports::ProgramRunner* runner;  // null: nothing can be parked
    ParkProgram program;
    // Moves a swap lease to host memory, or lets it take turns again if nothing else keeps it
    // there.
    std::function<void(LeaseId lease, bool aside)> set_aside;
    std::function<void(TenantId tenant)> hang_up;  // as TenantServer::hang_up
    std::function<void()> on_change;               // after each end of an attempt
  };

  // How long a step of parking may take before everything is undone.
  static constexpr Duration kEvictPatience = std::chrono::seconds(60);
  static constexpr Duration kClosePatience = std::chrono::seconds(10);
  // Each needs a process that loads the driver.
  static constexpr std::size_t kMostAtOnce = 8;
  // How often to check whether a lease that waits has room, and whether parked processes live.
  static constexpr Duration kReviewPause = std::chrono::milliseconds(500);
  // The leases of one user that are being parked or brought back.
  static constexpr std::size_t kMostOfUser = 2;

  // All parts must outlive the ParkKeeper.
  explicit ParkKeeper(Parts parts) : parts_(std::move(parts)) {}

  // Begins. An error: the lease stays as it is. Call is_under_way() and then last_trouble() to
  // learn how it ended. A lease that waits to come back stays parked.
  Result<void> park(LeaseId lease, const Author& by);
  // As park(). If there is no room, the lease waits for it, and nothing is under way.
  Result<void> unpark(LeaseId lease, const Author& by);
  const ParkWishes& wishes() const { return wishes_; }
  bool is_under_way(LeaseId lease) const { return works_.contains(lease); }
  // Why the last attempt failed; empty: it did not.
  std::optional<std::string> last_trouble(LeaseId lease) const;
  // Whether the lease must stay in host memory because of this.
  bool keeps_aside(LeaseId lease) const;

  // Call once, when the leases of the last daemon are there.
  void restore();
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // As in TenantServer::Parts.
  void on_connected(const Tenant& tenant);
  void on_ready(const Tenant& tenant, const gpurota_msg_park_ready& ready);

 private:
  // One attempt to park a lease or to bring it back.
  struct Work {
    enum class Step { kEvict, kRoom, kClose, kRun };
    std::uint64_t number = 0;
    bool parks = true;
    Step step = Step::kClose;
    std::string failed{};  // parking has failed and is being undone: why
    Author by{};
    TimePoint begun{};
    std::uint32_t seq = 0;
    std::set<pid_t> waits{};  // processes whose PARK_READY is due
    Bytes memory{};
    ports::EventLoop::SourcePtr timer{};
  };

  Result<void> check_rate(const LeaseEntry& entry, bool parks) const;
  Bytes in_motion() const;
  Work& begin(LeaseId lease, bool parks, const Author& by);
  Result<void> stay_parked(const LeaseEntry& entry, const Author& by);
  Result<void> ask_back(const LeaseEntry& entry, const Author& by);
  Result<void> bring_back(const LeaseEntry& entry, const Author& by);
  Result<void> end_without_processes(LeaseId lease, const Author& by);
  void wait_for_room(LeaseId lease);
  void review();
  void review_wishes();
  void review_after(Duration wait);
  void wait_for_eviction(LeaseId lease);
  void close(LeaseId lease);
  void wait_for_ready(LeaseId lease);
  void run(LeaseId lease);
  void on_end(LeaseId lease, std::uint64_t number, const ports::ProgramEnd& end);
  void on_parked(LeaseId lease, const ParkReport& report);
  void on_not_parked(LeaseId lease, const ParkReport& report);
  void on_not_back(LeaseId lease, const ParkReport& report);
  // Lets the processes run on. `trouble`: why the lease is not parked; empty: it was brought back.
  void release(LeaseId lease, std::string trouble, double seconds);
  void finish(LeaseId lease, const std::string& trouble);
  std::vector<ports::ProcessId> living(const LeaseEntry& entry) const;
  void order(LeaseId lease, pid_t pid, std::uint32_t order, std::uint32_t seq);
  void record(LeaseId lease, proto::EventType type, const std::string& message,
              const std::optional<Author>& by, const std::string& detail = {});

  Parts parts_;
  std::map<LeaseId, Work> works_;
  std::map<LeaseId, std::string> troubles_;
  ParkWishes wishes_{{parts_.loop, parts_.tables, parts_.turns, parts_.room}};
  ports::EventLoop::SourcePtr review_timer_;
  std::uint64_t last_number_ = 0;
  std::uint32_t last_seq_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // the runner may outlive this
};

}  // namespace gpurota::daemon
