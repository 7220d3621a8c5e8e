// Records what happens: as events, in the audit log, and as usage of each user. State thread only.
//
// Events and usage are written to the store in batches, a moment later. Until then events are in a
// file (event_spill.h). The audit log is written at once. A failure to write is logged once, and
// never stops the action that should have been recorded.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/history/audit_log.h"
#include "daemon/history/event_log.h"
#include "daemon/history/event_spill.h"
#include "daemon/history/usage_book.h"
#include "daemon/history/usage_reader.h"
#include "daemon/history/usage_tidier.h"
#include "daemon/history/wait_times.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "daemon/users/rate_limiter.h"
#include "daemon/users/users.h"
#include "ports/durability.h"
#include "ports/event_loop.h"
#include "ports/history.h"
#include "ports/processes.h"
#include "proto/types.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Recorder final {
 public:
  static constexpr std::size_t kMostEvents = 10000;

  struct Parts {
    ports::EventLoop& loop;
    ports::History* history;      // null: nothing outlives the daemon
    std::string audit_directory;  // empty: no audit log
    const config::Config& config;
    ports::Processes& processes;
    const GpuTable& gpus;
    std::function<WallTime()> wall_clock;
    std::function<void()> on_event{};  // called when there are new events, stored if possible
    UserGroups* groups = nullptr;      // null: no user is in a group
    std::string spill = {};            // file of events not stored yet; empty: a kill -9 loses them
    // Null: each write is on the disk at once. Otherwise followers get events only when the events
    // are on the disk.
    const ports::Durability* durability = nullptr;
  };

  explicit Recorder(Parts parts);
  ~Recorder();

  // Restores what the last daemon left. Call after the leases have been restored.
  Result<void> start(const std::map<LeaseId, LeaseEntry>& leases);
  // Writes everything that is not written yet. The destructor does so too.
  void flush();
  // Writes what could not be written before, as there may be room on the disk again.
  void store_again();
  void on_durability(const ports::Durability::News& news);

  struct Event {
    proto::EventType type = proto::EventType::kUnknown;
    std::optional<LeaseId> lease;
    GpuUuid gpu;  // empty: of no GPU
    std::optional<uid_t> uid;
    std::string finding;
    std::optional<Bytes> bytes;
    std::uint64_t count = 1;
    std::string message;  // all users see it: nothing private, no control characters
    std::vector<pid_t> pids;
    std::string detail;  // for its user and administrators
  };
  void record(Event event);
  void audit(const AuditRecord& record);

  void on_lease_change(const LeaseEntry& entry, bool gone);
  // Call when the GPUs are found. The part of a GPU that each lease has is unknown until then.
  void on_gpus_found(const std::map<LeaseId, LeaseEntry>& leases);
  void on_request(const QueueEntry& entry);  // the request waits; recorded once
  void on_request_granted(const QueueEntry& entry, const LeaseEntry& lease);
  void on_request_gone(const QueueEntry& entry, const Error& why);
  struct Who {
    uid_t uid = 0;
    pid_t pid = 0;
    std::optional<std::uint32_t> session{};  // of the web page
  };
  // Records a call that changes something, or that was refused. `error`: the word of the control
  // protocol, or empty.
  void on_call(const Who& who, std::string_view method, std::optional<LeaseId> lease,
               std::string_view error);
  // A process was refused memory.
  void on_refusal(LeaseId lease, uid_t uid, pid_t pid, const GpuUuid& gpu, Bytes asked);
  // A process was refused; `why` names the limit that is reached.
  void on_too_many_processes(LeaseId lease, uid_t uid, pid_t pid, const std::string& why);
  // The use of leases on this GPU in the last sample; leases that are not named used nothing.
  // `loads`: how busy the leases keep the GPU (lease_loads.h).
  void on_use(const GpuUuid& gpu, const std::map<LeaseId, Bytes>& used,
              const std::optional<std::map<LeaseId, int>>& loads = std::nullopt);

  const EventLog& events() const { return events_; }
  // Events since the daemon started, including those that the log has discarded.
  const std::map<proto::EventType, std::uint64_t>& counts() const { return counts_; }
  proto::Waits waits() const { return waits_.get(); }
  // Stores the usage of all leases, up to now or a moment ago. Call before usage is read.
  void store_usage();
  UsageReader read_usage() { return {parts_.history, readers_}; }
  // The usage of the current leases, up to now.
  std::vector<ports::StoredUsage> open_usage() {
    return usage_.open({parts_.loop.now(), parts_.wall_clock()});
  }
  Result<std::vector<ports::UsageSum>> usage_of(uid_t uid, WallTime since, WallTime until);

 private:
  // Writes to the audit log that a process was refused memory, and begins the event for that
  // refusal. Empty: the refusal repeats an earlier one, and is only counted.
  std::optional<Event> deny(LeaseId lease, uid_t uid, pid_t pid, const char* operation,
                            std::optional<Bytes> asked);
  // The state of a lease as it was recorded last.
  struct Told {
    bool started = false;
    bool ending = false;
    Lease lease;
  };

  void keep(ports::StoredEvent event);
  // Stores the events that the last daemon could not store.
  void take_up_spill();
  Result<void> resume_usage(const std::map<LeaseId, LeaseEntry>& leases);
  void schedule(Duration delay);
  void on_timer();
  void write(bool all_usage);
  void write_batch();
  // Gives followers the events that were written with changes of the store up to `upto`.
  void tell_stored(std::uint64_t upto);
  void tell_denials();
  void tell(const LeaseEntry& entry, proto::EventType type, const std::string& what);

  Parts parts_;
  EventLog events_;
  std::map<proto::EventType, std::uint64_t> counts_;
  UsageBook usage_;
  RateLimiter calls_;
  RateLimiter grants_;
  std::optional<AuditLog> audit_;
  std::optional<EventSpill> spill_;
  std::map<LeaseId, Told> told_;
  std::set<RequestId> waiting_;
  WaitTimes waits_;
  std::map<GpuUuid, std::set<LeaseId>> in_use_;
  ports::HistoryBatch batch_;
  std::optional<UsageTidier> tidier_;
  UsageReaders readers_;
  bool started_ = false;  // until start() has ended, changes are not recorded as events
  bool closed_usage_ = false;
  bool closing_ = false;  // there are no readers any more
  bool complained_ = false;
  bool unwritten_ = false;  // the last batch could not be written
  TimePoint usage_written_{};
  WallTime pruned_{};
  ports::EventLoop::SourcePtr timer_;
  TimePoint timer_at_{};
  // Events up to `last_event` were written with `change`, which is not on the disk yet. Oldest
  // first.
  struct Stored {
    std::uint64_t change, last_event;
  };
  std::deque<Stored> stored_;
};

// "8 GiB of GPU 0, GPU 1": what a lease has, for a message.
std::string describe_share(const Lease& lease, const GpuTable& gpus);

}  // namespace gpurota::daemon
