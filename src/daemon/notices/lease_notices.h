// Notices to users about their leases, requests and jobs: that a lease ends soon, and what somebody
// else, or a rule of the site, does to it. On the terminals of those who hold it, and as notices
// for the channels. State thread only.
//
// Users get no notice of their own acts, and none about fillers, which come and go by themselves.
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

  // The leases that the last daemon left: what it has told of them is not told again.
  void restore(const std::map<LeaseId, LeaseEntry>& leases);
  // How long before the end leases are told of may have changed.
  void on_config_change() { arm(); }

  void on_lease_change(const LeaseEntry& entry, bool gone);
  void on_request_gone(const QueueEntry& entry, const Error& why);
  // `kind`: kJobFailed, kJobFinished or kJobCancelled; `why`: empty for one that has finished.
  void on_job_end(uid_t owner, NoticeKind kind, const std::string& job, const std::string& why);

 private:
  struct Known {
    Lease lease;
    bool ending = false;
    WallTime told{};      // what was due until then is told, or was not there to be told
    bool warned = false;  // of this end
  };

  void on_change(const LeaseEntry& entry, const Lease& before);
  void on_end(const LeaseEntry& entry);
  void warn_in_time();
  void warn(Known& known, WallTime now);
  // Of what is due for this lease after `known.told`, the first.
  std::optional<WallTime> next_of(const Known& known) const;
  void arm();
  Notice about(const Lease& lease, NoticeKind kind, std::string text,
               const std::optional<Author>& by = std::nullopt) const;

  Parts parts_;
  std::map<LeaseId, Known> known_;
  ports::EventLoop::SourcePtr timer_;
};

// "root (administrator)": only administrators do anything to what is somebody else's.
std::string author_text(ports::Processes& processes, uid_t uid);

}  // namespace gpurota::daemon
