// Notices to users about their leases, requests and jobs: a lease ends soon, a job has ended, or
// another user or a rule of the site has changed a lease, a request or a job. Notices appear on the
// terminals that hold the lease, and are sent by the channels. State thread only.
//
// Users get no notice of their own acts, and none about fillers, which start and end by themselves.
#pragma once

#include "config/config.h"
#include "daemon/gpus/gpu_table.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/leases/queue.h"
#include "daemon/notices/notice.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class LeaseNotices final {
 public:
  // All must outlive the LeaseNotices.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;  // for names
    const config::Config& config;
    const GpuTable& gpus;
    Owners& owners;
    NoticeListener& listener;
    std::function<WallTime()> wall_clock;
  };

  explicit LeaseNotices(Parts parts) : parts_(std::move(parts)) {}

  // Takes over the leases of the last daemon. Notices whose time has passed are not sent again.
  void restore(const std::map<LeaseId, LeaseEntry>& leases);
  // Call when the configuration may have changed the times of notices before the end.
  void on_config_change() { arm(); }

  void on_lease_change(const LeaseEntry& entry, bool gone);
  void on_request_gone(const QueueEntry& entry, const Error& why);
  // `kind`: kJobFailed, kJobFinished or kJobCancelled; `why`: empty for kJobFinished.
  void on_job_end(uid_t owner, NoticeKind kind, const std::string& job, const std::string& why);

 private:
  struct Known {
    Lease lease;
    bool ending = false;
    WallTime told{};      // notices due up to this time were sent or skipped
    bool warned = false;  // the owner was warned of the current end
  };

  void on_change(const LeaseEntry& entry, const Lease& before);
  void on_end(const LeaseEntry& entry);
  void warn_in_time();
  void warn(Known& known, WallTime now);
  // When the next notice for this lease is due: the first one that is due after `known.told`.
  std::optional<WallTime> next_of(const Known& known) const;
  void arm();
  Notice about(const Lease& lease, NoticeKind kind, std::string text,
               const std::optional<Author>& by = std::nullopt) const;

  Parts parts_;
  std::map<LeaseId, Known> known_;
  ports::EventLoop::SourcePtr timer_;
};

// "root (administrator)": only administrators can change what belongs to somebody else.
std::string author_text(ports::Processes& processes, uid_t uid);

}  // namespace gpurota::daemon
