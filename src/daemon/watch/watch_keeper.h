// Feeds the watch with the readings of the GPUs, and carries out the decisions of the watch. State
// thread only.
//
// A process is signalled through a pidfd that was checked against its start time, and only if the
// process is in no lease at that moment (or in the lease that is over its limit). So changes since
// the reading take precedence.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_states.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/gpus/samples.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/attribution.h"
#include "daemon/leases/lease_members.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/leases/owners.h"
#include "daemon/notices/notice.h"
#include "daemon/notices/notice_text.h"
#include "daemon/tenants/tenant_table.h"
#include "daemon/users/users.h"
#include "daemon/watch/container_names.h"
#include "daemon/watch/hidden_reckoner.h"
#include "daemon/watch/library_reader.h"
#include "daemon/watch/stored_ages.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "watch/watcher.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// Acts on leases that a finding is about.
class LeaseEnforcement {
 public:
  virtual ~LeaseEnforcement() = default;
  virtual void release(LeaseId lease, const std::string& reason) = 0;
  // Processes that bypass libgpurota hold more than their lease may. Ends the lease, if it is a
  // job's.
  virtual void on_over_limit(LeaseId lease, const std::string& what) = 0;
};

class WatchKeeper final {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    const config::Config& config;
    const GpuTable& gpus;
    const LeaseTables& tables;
    Attribution& attribution;
    Recorder& recorder;
    GpuStates& states;
    const TenantLeases& tenants;
    Owners& owners;
    LeaseEnforcement& enforcement;
    Samples& samples;
    UserGroups& groups;
    NoticeListener& notices;
    Libraries* libraries = nullptr;  // null: libraries are not read
    ContainerNames::Read read_container;
    HiddenReckoner::ChargeOf charge_of;
    HiddenReckoner::CountedAgain counted_again;
    std::function<WallTime()> wall_clock;
  };

  explicit WatchKeeper(Parts parts)
      : parts_(std::move(parts)),
        names_(parts_.loop, parts_.processes, parts_.read_container),
        hidden_({.config = parts_.config,
                 .gpus = parts_.gpus,
                 .tables = parts_.tables,
                 .states = parts_.states,
                 .processes = parts_.processes,
                 .charge_of = parts_.charge_of,
                 .counted_again = parts_.counted_again}),
        ages_({parts_.gpus, parts_.states, parts_.processes, parts_.wall_clock}) {}

  // Restores the ages and baselines that the last daemon has stored. Call before the first reading.
  void restore() {
    ages_.restore(watcher_, parts_.loop.now());
    hidden_.restore();
  }

  // The reading of a good sample: its processes, each with the lease to which it belongs.
  watch::Reading reading_of(const GpuSample& sample);
  // Adds the memory that no listed process has. Call once for each good sample, after leases are
  // charged by that sample.
  void reckon_hidden(watch::Reading& reading) {
    hidden_.read(reading, parts_.loop.now() >= settled_, parts_.loop.now());
  }
  void on_sample(const watch::Reading& reading);
  // A new lease may cover unreserved use, and use that an ended lease covered becomes unreserved.
  // Such a change takes effect before the GPU is given to anybody, not at the next reading.
  void on_lease_change(const LeaseEntry& entry, bool gone);

  // Findings of the last reading of each GPU.
  std::vector<watch::Finding> seen() const { return watcher_.seen(); }
  // The wall clock time of `when`, for people.
  WallTime wall_time(TimePoint when) const {
    return parts_.wall_clock() -
           std::chrono::duration_cast<std::chrono::milliseconds>(parts_.loop.now() - when);
  }
  // As ContainerNames::name_of().
  std::optional<containers::ContainerName> container_name(const watch::Container& container,
                                                          pid_t pid) const {
    return names_.name_of(container, pid);
  }
  // The state of libgpurota in the process, by the last reading of the GPU.
  watch::Library library_of(const GpuUuid& gpu, pid_t pid) const;
  // How many times a limit has been found not to be enforced since the daemon started.
  int times_not_limited() const { return times_not_limited_; }
  bool has_open(const GpuUuid& gpu) const { return watcher_.has_open(gpu); }
  // The memory held by processes that no lease covers and that are not ignored, and the memory that
  // no listed process has.
  GpuStates::Unreserved unreserved(const watch::Reading& reading) const;
  // Whether a process that is in no lease of this GPU, and is not ignored, computes on it.
  bool has_foreign(const watch::Reading& reading) const;

 private:
  watch::Library library_of(const watch::SeenProcess& process) const;
  void ask_for_libraries(watch::Reading& reading);
  watch::Policy policy() const;
  watch::Action action_for(watch::FindingKind kind, std::optional<uid_t> uid) const;
  // An event of a finding that waits for a moment until the command lines of the processes have
  // been read. Events stay in order.
  struct Unreported {
    watch::Finding finding;
    Recorder::Event event;
  };
  void begun(const watch::Finding& finding);
  bool is_being_read(const watch::Finding& finding) const;
  void tell_soon();
  void tell_begun();
  void ended(const watch::Finding& finding);
  void stop(const watch::Step& step);
  bool is_still_silent(const watch::Finding& finding, const watch::SeenProcess& process);
  bool may_stop(const watch::Finding& finding, const watch::SeenProcess& process);
  // Notifies the users whom the finding concerns, each with their own sentence. If there is no such
  // sentence, the user of the finding gets `message`.
  void tell_those_concerned(const watch::Finding& finding, const std::string& message);
  FoundUse found_use(const watch::Finding& finding) const;
  void tell(const watch::Finding& finding, uid_t user, const std::string& text);
  Recorder::Event event_of(const watch::Finding& finding, proto::EventType type,
                           std::string message) const;
  std::string user(std::optional<uid_t> uid) const;
  // " in podman web (alpine:3)"; empty: in none.
  std::string container_of(const watch::SeenProcess& process) const;
  std::string commands_of(const watch::Finding& finding) const;
  std::string describe(const watch::Finding& finding) const;

  Parts parts_;
  mutable ContainerNames names_;  // mutable: asking for a name begins a reading
  watch::Watcher watcher_;
  HiddenReckoner hidden_;
  StoredAges ages_;
  // When programs that held memory under the last daemon have connected again, or never will.
  TimePoint settled_ = TimePoint::max();  // no reading yet
  std::map<GpuUuid, std::map<pid_t, watch::Library>> libraries_;
  int times_not_limited_ = 0;
  std::vector<Unreported> unreported_;
  ports::EventLoop::SourcePtr telling_;  // the latest time for `unreported_`
};

}  // namespace gpurota::daemon
