// The texts of notices: each is a sentence for its recipient, and safe to show on a terminal. Pure,
// except for the time zone.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "config/config.h"
#include "core/lease.h"
#include "core/notice_kind.h"
#include "core/time.h"
#include "daemon/gpus/gpu_table.h"
#include "watch/finding.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// `: "maintenance"`: the reason that somebody gave, to add to a sentence; empty if there is none.
std::string said_text(const std::string& reason);

// "L17 ends in 5 minutes; to keep it: gpurota update L17 --for 2h".
std::string ends_soon_text(LeaseId lease, std::chrono::milliseconds left);
// "L17 ends in 10 minutes: SIGUSR1 was sent to 2 of its processes"; `leaves`: the lease may have to
// leave for a booking then.
std::string warned_text(LeaseId lease, std::chrono::milliseconds left, bool leaves,
                        const EndWarning& warning, int processes);
// "your booking R7 of GPU 0 begins at 13:00; to cancel it: gpurota cancel R7".
std::string begins_soon_text(RequestId booking, const std::string& gpus, WallTime begins,
                             WallTime now);
// "L12: GPU 3 at least until Tue 9 Dec 10:00 (bob's booking R16)".
std::string leaves_soon_text(LeaseId lease, const std::string& gpus, WallTime begins,
                             const std::string& user, RequestId booking, WallTime now);
// `L17 now ends at 14:05: root (administrator) changed its timeout ("maintenance")`. Empty: the
// change does not concern the owner.
std::string changed_text(const Lease& before, const Lease& now, const std::string& who,
                         const std::string& reason, WallTime time);
// "L17 was released by root (administrator)"; `why`: the reason in the lease.
std::string ended_text(LeaseId lease, const std::string& why);
// For a lease that left for a booking: "L12 ended: bob began to use booking R16".
std::string left_text(LeaseId lease, const std::string& why);
// The end of a reservation whose programs may continue.
std::string outlived_text(LeaseId lease, config::Expired policy);
// "your request R7 was cancelled by root (administrator)".
std::string cancelled_text(RequestId request, const std::string& why);
// `root (administrator) stopped your job web: "new fan"`; `what`: "job" or "filler".
std::string program_text(const std::string& who, const std::string& did, const std::string& what,
                         const std::string& name, const std::string& reason);
// "your job web has failed: exit status 3"; `kind`: as LeaseNotices::on_job_end().
std::string job_end_text(NoticeKind kind, const std::string& job, const std::string& why);

// A finding, for the users whom it concerns.
struct FoundUse {
  watch::FindingKind kind = watch::FindingKind::kForeignUse;
  std::string gpu;               // "GPU 1"
  std::optional<LeaseId> lease;  // kForeignUse: the lease that has the GPU; else the finding's
  std::string owner;             // of that lease
  std::string user;              // the user of the GPU
  std::vector<pid_t> pids;       // empty: hidden from the reader
  std::size_t processes = 0;
  std::optional<Bytes> used;  // empty: unknown
};
// "gu_bob's process 32459 uses GPU 1, which is yours (L17): 3 GiB".
std::string victim_text(const FoundUse& found);
// "your process 32459 uses GPU 1, which gu_alice has (L17): please stop it". Only for kForeignUse
// and kUnreservedUse.
std::string culprit_text(const FoundUse& found);

// The text to add on the terminal of the lease that the process is in: "; it was started in L5, …".
// The lease has `gpus`, but not the GPU of the finding.
std::string elsewhere_text(LeaseId lease, const std::vector<std::string>& gpus);

// The text for several notices at once, of which `last` is the newest.
std::string merged_text(std::uint64_t count, const std::string& last);

}  // namespace gpurota::daemon
