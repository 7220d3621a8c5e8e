// What each call of the control protocol does. State thread only; one function for each method.
#pragma once

#include "daemon/control/control_server.h"
#include "daemon/control/ended_leases.h"
#include "daemon/control/shared_answers.h"
#include "daemon/control/views.h"
#include "daemon/gpus/driver_state.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/lease_update.h"
#include "daemon/leases/queue.h"
#include "proto/methods.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Fillers;
class TurnKeeper;

class Jobs;
struct FillerEntry;
struct JobEntry;
struct Meant;

// What the daemon as a whole answers.
class DaemonSelf {
 public:
  virtual ~DaemonSelf() = default;
  virtual std::vector<proto::Check> doctor(uid_t viewer) = 0;
  virtual proto::Health::Reply health() const = 0;
};

// Reads the configuration again.
class Reloading {
 public:
  virtual ~Reloading() = default;
  virtual Result<void> reload() = 0;
};

class ControlMethods final : public CallHandler, public LeaseListener {
 public:
  struct Parts {
    LeaseManager& leases;
    Queue& queue;
    GpuTable& gpus;
    const Views& views;
    std::string tenant_socket;
    std::string preload;  // libgpurota.so; empty: not installed
    const DriverState& driver;
    DaemonSelf& self;
    Reloading& reloading;
    Samples& samples;  // the caller will ask again
    Recorder& recorder;
    GpuStates& states;
    const GpuRooms& rooms;
    const Allowances& allowances;
    const LeaseUpdates& updates;
    Users& users;
    const lease::GrantBook& grants;
    std::function<WallTime()> wall_clock;
    Jobs* jobs = nullptr;
    ports::Processes* processes = nullptr;
    Fillers* fillers = nullptr;
    SharedAnswers* answers =
        nullptr;  // empty: each answer is made anew; with `processes` and `turns`
    TurnKeeper* turns = nullptr;
    const config::Config* config = nullptr;
  };

  explicit ControlMethods(Parts parts) : parts_(std::move(parts)) {}

  Outcome call(const Caller& caller, const proto::Call& call) override;
  void greet(uid_t user, const std::vector<gid_t>& groups) override {
    parts_.users.greet(user, groups);
  }
  void abandon(LeaseId lease) override { parts_.leases.abandon(lease); }
  void leave(RequestId request) override {
    parts_.queue.leave(request, Error{Code::kGone, 0, "its connection was closed"});
  }
  std::string describe(const Caller& caller, const LeaseEntry& entry, bool gone) const override;
  std::string notice(const Caller& caller, LeaseId lease,
                     const std::string& message) const override;
  std::string granted(const Caller& caller, const LeaseEntry& lease) const override;
  std::string waits(const Caller& caller, const QueueEntry& entry) const override;
  // Whoever asks after one that is gone from now on hears how it ended.
  void on_lease_change(const LeaseEntry& entry, bool gone) override;

 private:
  // Of what shared answers show beside what their makers are told: grows with each.
  std::uint64_t changes() const;
  // What holders are told of their lease.
  proto::Hold::Reply last_word(const Caller& caller, const LeaseEntry& entry, bool gone) const;
  // The answer `Method` makes of what the views give, or the one that was made before.
  template <class Method, class View>
  Outcome shared(const Caller& caller, SharedAnswers::About about, const View& view);
  Outcome on(const Caller& caller, const proto::GetInfo&);
  Outcome on(const Caller& caller, const proto::Acquire&);
  Outcome on(const Caller& caller, const proto::Start&);
  Outcome on(const Caller& caller, const proto::Hold&);
  Outcome on(const Caller& caller, const proto::Release&);
  Outcome on(const Caller& caller, const proto::Update&);
  Outcome on(const Caller& caller, const proto::Status&);
  Outcome on(const Caller& caller, const proto::ListProcesses&);
  Outcome on(const Caller& caller, const proto::Enqueue&);
  Outcome on(const Caller& caller, const proto::CheckRequest&);
  Outcome on(const Caller& caller, const proto::GetEnvironment&);
  Outcome on(const Caller& caller, const proto::ListRequests&);
  Outcome on(const Caller& caller, const proto::Cancel&);
  Outcome on(const Caller& caller, const proto::Drain&);
  Outcome on(const Caller& caller, const proto::Undrain&);
  Outcome on(const Caller& caller, const proto::AddFiller&);
  Outcome on(const Caller& caller, const proto::ListFillers&);
  Outcome on(const Caller& caller, const proto::ControlFiller&);
  Outcome on(const Caller& caller, const proto::ReadFillerLog&);
  Outcome on(const Caller& caller, const proto::ListTurns&);
  Outcome on(const Caller& caller, const proto::SetGpus&);
  Outcome on(const Caller& caller, const proto::AddJob&);
  Outcome on(const Caller& caller, const proto::ListJobs&);
  Outcome on(const Caller& caller, const proto::ControlJob&);
  Outcome on(const Caller& caller, const proto::UpdateJob&);
  Outcome on(const Caller& caller, const proto::ExportJobs&);
  Outcome on(const Caller& caller, const proto::ApplyJobs&);
  Outcome on(const Caller& caller, const proto::ReadJobLog&);
  Outcome on(const Caller& caller, const proto::Events&);
  Outcome on(const Caller& caller, const proto::Report&);
  Outcome on(const Caller& caller, const proto::Doctor&);
  Outcome on(const Caller& caller, const proto::Health&);
  Outcome on(const Caller& caller, const proto::Reload&);
  Outcome on(const Caller& caller, const proto::ServiceInfo&);
  Outcome on(const Caller& caller, const proto::InterfaceDescription&);

  enum class Waiting { kForFillersOnly, kInTheQueue };
  // Acquire and Enqueue: the lease, or a place in the queue.
  Outcome ask(const Caller& caller, const proto::LeaseRequest& wanted, std::string ticket,
              Waiting waiting);
  Result<AcquireRequest> request_of(const Caller& caller, const proto::LeaseRequest& wanted) const;
  Result<void> set_draining(const Caller& caller, const std::vector<std::string>& names,
                            bool draining, const std::string& reason);
  // kLimit if what is asked for would be at the cost of somebody who waits.
  Result<void> check_update(const Caller& caller, const LeaseEntry& entry,
                            const proto::Update& call) const;
  // kNotFound if there is no such lease, kDenied if it is somebody else's.
  Result<const LeaseEntry*> own_lease(const Caller& caller, LeaseId id) const;
  Result<std::vector<LeaseId>> chosen_leases(const Caller& caller,
                                             const proto::Release& call) const;
  std::vector<proto::Variable> environment_of(const LeaseEntry& entry) const;

  // Whose jobs or fillers (`what`) of this name, or all, a call is about.
  Meant meant(const Caller& caller, const char* what, const std::optional<std::string>& name,
              const std::optional<std::string>& user) const;

  proto::FillerPlace describe_place(const FillerEntry& filler, const GpuEntry& gpu) const;
  proto::Filler describe_filler(const FillerEntry& filler) const;
  Result<const FillerEntry*> own_filler(const Caller& caller, const std::string& name,
                                        const std::optional<std::string>& user) const;
  Result<std::vector<GpuUuid>> select(const std::vector<std::string>& names) const;
  Result<void> set_gpus(const Caller& caller, const proto::SetGpus& call);

  proto::Job describe_job(const JobEntry& job) const;
  // Of its lease, if it has one of its own that can be changed: that it has been.
  Result<bool> update_lease_of(const Caller& caller, const JobEntry& job,
                               const proto::UpdateJob& call);
  // What a refusal comes to, which the job is told whose run asked.
  Outcome refused_to(const Caller& caller, Outcome outcome, const std::string& why);
  // kNotFound, or kDenied if it is somebody else's.
  Result<const JobEntry*> own_job(const Caller& caller, const std::string& name,
                                  const std::optional<std::string>& user) const;

  Parts parts_;
  std::uint64_t last_acquire_ = 0;
  EndedLeases ended_;
};

}  // namespace gpurota::daemon
