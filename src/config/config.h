// The site's configuration: gpurota.toml as plain data. Every field has the default that applies
// without a file, so that gpurotad runs without one.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "config/automatic.h"
#include "config/bookings.h"
#include "config/fair_share.h"
#include "config/gpu_class.h"
#include "config/web.h"
#include "core/notice_kind.h"
#include "core/user_limits.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::config {

enum class Privacy { kOwner, kOpen };

// The enforcement of the limits of slices. kLibrary: by libgpurota alone; kAuto: by the driver as
// well, where it can; kDriver: like kAuto, but slices that the driver cannot limit are refused.
enum class Enforcement { kLibrary, kAuto, kDriver };

// The action on a finding of the watch. Each action includes those before it.
enum class WatchAction { kReport, kNotify, kStop };

// An exception to [watch]: findings about these users (names or numbers) or members of these groups
// have another action. The first rule that matches counts.
struct WatchRule {
  std::string finding;  // "unreserved_use", …; empty: any
  std::vector<std::string> users;
  std::vector<std::string> groups;
  WatchAction action = WatchAction::kReport;
  bool operator==(const WatchRule&) const = default;
};

// Processes that never count as foreign or unreserved use.
struct WatchIgnore {
  std::optional<uid_t> uid;  // at least one of the two
  std::string executable;    // absolute path
  bool operator==(const WatchIgnore&) const = default;
};

struct Watch {
  WatchAction unreserved_use = WatchAction::kReport;
  WatchAction foreign_use = WatchAction::kReport;
  WatchAction over_limit = WatchAction::kReport;
  WatchAction unused = WatchAction::kReport;
  // A limit must be enforced: a process that evades it is stopped unless the site sets another
  // action.
  WatchAction not_limited = WatchAction::kStop;
  // From SIGTERM to SIGKILL where the action is "stop".
  std::chrono::milliseconds stop_grace{10000};
  // A lease whose GPU is unused for this long is a finding; zero: never.
  std::chrono::milliseconds unused_after{1800000};
  // From that finding to the release of the lease, where the action is "stop".
  std::chrono::milliseconds unused_grace{600000};
  // Between two samples of a GPU with neither a lease nor a process.
  std::chrono::milliseconds idle_period{1000};
  std::vector<WatchRule> rules;
  std::vector<WatchIgnore> ignore;
  bool operator==(const Watch&) const = default;
};

// [park]
struct Park {
  // Major versions of the driver with which leases can be parked, beside those that were measured.
  std::vector<std::string> drivers;
  bool operator==(const Park&) const = default;
};

// [soft_limit]: what happens to a lease above its soft limit. Each policy includes those before it.
struct SoftLimit {
  enum class Policy {
    kWarn,      // log, and notify the owner
    kThrottle,  // growth above it is slowed down
    // A swap lease above its soft limit gives way to all leases that are not above theirs. Among
    // leases above their soft limits, the one with the lowest priority gives way first.
    kEvict,
    kStop,  // end the lease, the lowest priority first
  };

  Policy policy = Policy::kWarn;
  std::chrono::milliseconds throttle_delay{100};  // before each grant above it
  std::chrono::milliseconds grace{30000};         // above it for this long: stop
  bool tell_owner = true;                         // a line on the terminal of its gpurota run

  bool operator==(const SoftLimit&) const = default;
};

// [lowered_limit]: what happens to memory above a hard limit that was lowered below what the lease
// holds. New allocations are always bounded by the limit.
struct LoweredLimit {
  enum class Policy { kKeep, kStop };

  Policy policy = Policy::kKeep;
  std::chrono::milliseconds grace{60000};

  bool operator==(const LoweredLimit&) const = default;
};

// [filler]: programs that use idle GPUs.
struct Filler {
  int load_percent = 10;  // a GPU this busy is in use, even without a visible process
  bool count_against_limits = false;
  // While another filler waits for its GPU; zero: no limit.
  std::chrono::milliseconds longest_stay{3600000};

  bool operator==(const Filler&) const = default;
};

// [turns]: swap leases that do not fit together (docs/design/turns.md).
struct Turns {
  enum class Mode { kAuto, kOn, kOff };
  // The settings of one GPU; an empty field is as for all GPUs.
  struct Gpu {
    std::optional<SizeSpec> capacity;  // for leases of all kinds together
    std::optional<Mode> mode;
    std::optional<std::chrono::milliseconds> quantum;  // zero: from the cost of moving
    bool operator==(const Gpu&) const = default;
  };

  Gpu every;                        // capacity: the whole GPU; mode: auto; quantum: zero
  std::map<std::string, Gpu> gpus;  // by index or UUID
  SizeSpec host_budget{{}, 50};     // of the machine's RAM, for what is evicted
  SizeSpec pinned{{}, 50};          // of that RAM, for the pinned part
  int moving_percent = 5;           // share of time for moving memory, if `quantum` is zero
  int priority_percent = 50;        // share of time that higher priorities may take from lower ones
  std::chrono::milliseconds idle_release{5};
  std::chrono::milliseconds yield_deadline{30000};
  bool stop_at_deadline = false;
  std::chrono::milliseconds stopped_deadline{600000};  // zero: never
  std::chrono::milliseconds longest_drain{600000};     // zero: no limit
  bool clean_blocks = true;  // memory that has not changed is not copied out again

  bool operator==(const Turns&) const = default;
};

// [notify]: notices to users about their leases, on their terminals and by other channels
// (docs/design/notices.md).
struct Notify {
  std::vector<std::string> command;  // a program, an absolute path, and its arguments; empty: none
  bool mail = false;
  std::string mail_domain;                      // empty: to the local user
  std::string sendmail = "/usr/sbin/sendmail";  // absolute
  std::string webhook;                          // a URL; empty: none
  std::vector<std::string> webhook_headers;     // "Authorization: Bearer …"
  std::string user = "gpurota-notify";          // the user of these programs, if the daemon is root
  std::vector<NoticeKind> events = {
      NoticeKind::kEndsSoon,    NoticeKind::kChanged,      NoticeKind::kReleased,
      NoticeKind::kStopped,     NoticeKind::kFinding,      NoticeKind::kJobFailed,
      NoticeKind::kJobFinished, NoticeKind::kJobCancelled, NoticeKind::kRequestCancelled,
      NoticeKind::kBeginsSoon,  NoticeKind::kBegun,        NoticeKind::kCannotBegin,
      NoticeKind::kLeavesSoon};
  // The owner of a lease is notified this long before its end, longest first. Empty: never.
  std::vector<std::chrono::milliseconds> before_end = {std::chrono::minutes(5),
                                                       std::chrono::minutes(1)};
  // The owner of a booking, and the owners of leases that have to leave for it, are notified this
  // long before its beginning.
  std::vector<std::chrono::milliseconds> before_booking = {
      std::chrono::hours(24), std::chrono::hours(1), std::chrono::minutes(5),
      std::chrono::minutes(1)};
  std::chrono::milliseconds time_limit{10000};  // of each program
  int most_per_hour = 20;                       // per kind of event and user; more are merged

  bool operator==(const Notify&) const = default;
};

// [access]: who may open the GPUs' device files (docs/design/strict-access.md).
struct Access {
  bool strict = false;  // off: no device file is touched
  // Users who may open the devices without a lease, besides root.
  std::vector<std::string> users;
  std::vector<std::string> groups;

  bool operator==(const Access&) const = default;
};

// [containers]: what gpurota tells container engines (docs/design/containers.md).
struct Containers {
  bool cdi = false;                     // describe leases as devices
  std::string cdi_folder = "/run/cdi";  // absolute, in memory
  // The account that owns automatic leases in containers of root's engine, whatever users the
  // containers have inside. Empty: the users in the containers own the leases.
  std::string owner;

  bool operator==(const Containers&) const = default;
};

// The treatment of a reservation whose time is over while its programs hold memory.
enum class Expired {
  kYield,  // the programs continue until somebody waits for the GPUs
  kStop,   // the programs are ended at once
  kKeep,   // the programs continue for as long as they like
};

struct Config {
  // The group that may connect. Empty: everybody on the machine (if root runs the daemon), or only
  // the daemon's own user (otherwise).
  std::string group;
  // The members of this group are administrators, like root and the daemon's own user.
  std::string admin_group;
  // How much of the machine each user may have, and the time over which GPU hours are counted.
  LimitRules limits;
  std::chrono::seconds hours_window = std::chrono::hours(168);
  // kOwner: others see user, GPU, share, memory and times; kOpen: command, pid and note, too.
  Privacy privacy = Privacy::kOwner;
  Enforcement enforcement = Enforcement::kLibrary;
  // Use without a lease up to this does not take a GPU out of service (a desktop, a monitor). Zero:
  // any process takes the GPU out of service.
  Bytes unreserved_threshold = gib(1);
  // On a GPU without memory of its own (unified memory): the part of the machine's memory that
  // leases leave free.
  SizeSpec unified_reserve{{}, 10};
  int interactive_percent = 80;  // share of time that interactive leases may take from others
  // Between two samples of a GPU that has leases. A sample costs about 20 µs of driver time
  // (measured).
  std::chrono::milliseconds watch_period{250};
  // From SIGTERM to SIGKILL when a lease ends and its processes are still alive.
  std::chrono::milliseconds grace{5000};
  // After a restart: how long processes of known leases have to reconnect before others are granted
  // more.
  std::chrono::milliseconds reconnect_grace{3000};
  Watch watch;
  // The size of the audit log below the state directory, for each user, so that no user can push
  // out the entries of others. Zero: no audit log.
  Bytes audit_size_per_user = mib(4);
  // How long the history of use is kept (gpurota report).
  int history_days = 400;
  Expired expired_reservation = Expired::kYield;
  // How long free GPUs are kept for one request that waits for more. Then others may have them for
  // as long. Zero: no limit.
  std::chrono::milliseconds keep_free_gpus{3600000};
  // After this wait the first request in the queue may be protected, so that nobody delays it
  // (lease/keeping.h). Zero: never.
  std::chrono::seconds longest_wait = std::chrono::hours(24);
  int max_leases_per_user = 64;
  int max_new_leases_per_hour = 3600;  // per user; also the most that may be made in one burst
  int max_tenants_per_lease = 1024;
  bool program_notices = true;  // libgpurota prints once why memory was refused
  int max_tenants_per_user = 8192;
  int max_connections_per_user = 256;
  // The limit of a user's answers that are not read yet, and of their calls that are not served
  // yet. While more answers are unread, none of the user's calls is served.
  Bytes unread_size_per_user = mib(16);
  // The limit on the total size of the files that hold the output of a user's jobs and fillers.
  // Each job may take jobs::kLogBound.
  Bytes job_log_size_per_user = gib(2);
  // Rows of usage in the store; beyond this a user's oldest rows are merged.
  int max_usage_rows_per_user = 20000;
  Automatic automatic;
  Park park;
  SoftLimit soft_limit;
  LoweredLimit lowered_limit;
  Filler filler;
  Turns turns;
  Notify notify;
  Access access;
  Web web;
  Containers containers;
  FairShare fair_share;
  Bookings bookings;
  std::map<std::string, GpuClass> gpu_classes;
  GpuRules gpus;

  bool operator==(const Config&) const = default;
};

std::optional<Turns::Mode> parse_turns_mode(std::string_view word);  // "auto", "on", "off"
// "5s", "250ms"; "auto" is zero.
Result<std::chrono::milliseconds> parse_quantum(std::string_view text);

}  // namespace gpurota::config
