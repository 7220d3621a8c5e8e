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

// The action about a finding of the watch; each includes those before it.
enum class WatchAction { kReport, kNotify, kStop };

// A finding about these users (names or numbers) or members of these groups is handled otherwise
// than [watch] says. The first rule that fits holds.
struct WatchRule {
  std::string finding;  // "unreserved_use", …; empty: any
  std::vector<std::string> users;
  std::vector<std::string> groups;
  WatchAction action = WatchAction::kReport;
  bool operator==(const WatchRule&) const = default;
};

// Processes that are neither foreign nor in unreserved use.
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
  // A limit that does not hold is no limit: stopped unless the site says otherwise.
  WatchAction not_limited = WatchAction::kStop;
  // From SIGTERM to SIGKILL where the action is "stop".
  std::chrono::milliseconds stop_grace{10000};
  // A lease whose GPU nothing uses for so long is a finding; zero: never.
  std::chrono::milliseconds unused_after{1800000};
  // From that finding to the release of the lease, where the action is "stop".
  std::chrono::milliseconds unused_grace{600000};
  // Between two looks at a GPU with neither a lease nor a process.
  std::chrono::milliseconds idle_period{1000};
  std::vector<WatchRule> rules;
  std::vector<WatchIgnore> ignore;
  bool operator==(const Watch&) const = default;
};

// [soft_limit]: what is done about a lease above its soft limit; each does what those before it do.
struct SoftLimit {
  enum class Policy {
    kWarn,      // log, and tell the owner
    kThrottle,  // growth above it takes its time
    kEvict,     // swap leases: it gives way to all that are not above theirs, lowest priority first
    kStop,      // end the lease, the lowest priority first
  };

  Policy policy = Policy::kWarn;
  std::chrono::milliseconds throttle_delay{100};  // of each grant above it
  std::chrono::milliseconds grace{30000};         // above it for so long: stop
  bool tell_owner = true;                         // a line on the terminal of its gpurota run

  bool operator==(const SoftLimit&) const = default;
};

// [lowered_limit]: a hard limit that was lowered below what the lease holds always bounds what
// comes next; this is about what is there.
struct LoweredLimit {
  enum class Policy { kKeep, kStop };

  Policy policy = Policy::kKeep;
  std::chrono::milliseconds grace{60000};

  bool operator==(const LoweredLimit&) const = default;
};

// [filler]: programs that use what nobody needs.
struct Filler {
  int load_percent = 10;  // a GPU this busy is needed by somebody, whom we cannot see
  bool count_against_limits = false;
  // While another one waits for its GPU; zero: for ever.
  std::chrono::milliseconds longest_stay{3600000};

  bool operator==(const Filler&) const = default;
};

// [turns]: swap leases that do not fit together (docs/design/turns.md).
struct Turns {
  enum class Mode { kAuto, kOn, kOff };
  // Of one GPU; what is empty is as for all of them.
  struct Gpu {
    std::optional<SizeSpec> capacity;  // what leases of all kinds may have of it
    std::optional<Mode> mode;
    std::optional<std::chrono::milliseconds> quantum;  // zero: from the cost of moving
    bool operator==(const Gpu&) const = default;
  };

  Gpu every;                        // capacity: the whole GPU; mode: auto; quantum: zero
  std::map<std::string, Gpu> gpus;  // by index or UUID
  SizeSpec host_budget{{}, 50};     // of the machine's RAM, for what is evicted
  SizeSpec pinned{{}, 50};          // of that RAM, for what of it is pinned
  int moving_percent = 5;           // of the time, with a quantum from the cost
  int priority_percent = 50;        // of the time that higher priorities may take from lower ones
  std::chrono::milliseconds idle_release{5};
  std::chrono::milliseconds yield_deadline{30000};
  bool stop_at_deadline = false;
  std::chrono::milliseconds stopped_deadline{600000};  // zero: never
  std::chrono::milliseconds longest_drain{600000};     // zero: for ever
  bool clean_blocks = true;  // what did not change is not copied out again

  bool operator==(const Turns&) const = default;
};

// [notify]: what users hear of their leases, on their terminals and beside them
// (docs/design/notices.md).
struct Notify {
  std::vector<std::string> command;  // a program, an absolute path, and its arguments; empty: none
  bool mail = false;
  std::string mail_domain;                      // empty: to the local user
  std::string sendmail = "/usr/sbin/sendmail";  // absolute
  std::string webhook;                          // a URL; empty: none
  std::vector<std::string> webhook_headers;     // "Authorization: Bearer …"
  std::string user = "gpurota-notify";  // who runs these programs, where the daemon is root's
  std::vector<NoticeKind> events = {
      NoticeKind::kEndsSoon,    NoticeKind::kChanged,      NoticeKind::kReleased,
      NoticeKind::kStopped,     NoticeKind::kFinding,      NoticeKind::kJobFailed,
      NoticeKind::kJobFinished, NoticeKind::kJobCancelled, NoticeKind::kRequestCancelled,
      NoticeKind::kBeginsSoon,  NoticeKind::kBegun,        NoticeKind::kCannotBegin,
      NoticeKind::kLeavesSoon};
  // How long before a lease ends its owner is told, longest first. Empty: never.
  std::vector<std::chrono::milliseconds> before_end = {std::chrono::minutes(5),
                                                       std::chrono::minutes(1)};
  // The same before a booking begins: its owner, and those who would have to leave.
  std::vector<std::chrono::milliseconds> before_booking = {
      std::chrono::hours(24), std::chrono::hours(1), std::chrono::minutes(5),
      std::chrono::minutes(1)};
  std::chrono::milliseconds time_limit{10000};  // of each program
  int most_per_hour = 20;                       // of each event, for each user; more are merged

  bool operator==(const Notify&) const = default;
};

// [access]: who may open the GPUs' device files (docs/design/strict-access.md).
struct Access {
  bool strict = false;  // off: no device file is touched
  // Users who may open the devices without a lease, beside root.
  std::vector<std::string> users;
  std::vector<std::string> groups;

  bool operator==(const Access&) const = default;
};

// [containers]: what container engines are told of (docs/design/containers.md).
struct Containers {
  bool cdi = false;                     // specs of devices that are leases
  std::string cdi_folder = "/run/cdi";  // absolute, in memory
  // The account that owns automatic leases in containers of root's engine, whatever users these
  // have inside. Empty: those users own them.
  std::string owner;

  bool operator==(const Containers&) const = default;
};

// The treatment of a reservation whose time is over while its programs hold memory.
enum class Expired {
  kYield,  // they run on until somebody waits for the GPUs
  kStop,   // they are ended at once
  kKeep,   // they run on for as long as they like
};

struct Config {
  // The group that may connect. Empty: everybody on the machine (the daemon of root), or only the
  // daemon's own user (a daemon of anybody else).
  std::string group;
  // Its members are administrators, beside root and the daemon's own user.
  std::string admin_group;
  // How much of the machine each user may have, and what their GPU hours are counted over.
  LimitRules limits;
  std::chrono::seconds hours_window = std::chrono::hours(168);
  // kOwner: others see user, GPU, share, memory and times; kOpen: command, pid and note too.
  Privacy privacy = Privacy::kOwner;
  // Use without a lease below this is not worth leaving a GPU out for (a desktop, a monitor). Zero:
  // any process is.
  Bytes unreserved_threshold = gib(1);
  // The part that leases leave free of the machine's memory on a GPU that has none of its own
  // (unified memory).
  SizeSpec unified_reserve{{}, 10};
  // Between two looks at a GPU that has leases. A look costs about 20 µs of driver time (measured).
  std::chrono::milliseconds watch_period{250};
  // From SIGTERM to SIGKILL when a lease ends with processes left.
  std::chrono::milliseconds grace{5000};
  // After a restart: how long processes of known leases have to reconnect before others are granted
  // more.
  std::chrono::milliseconds reconnect_grace{3000};
  Watch watch;
  // The audit log below the state directory: how much is kept for each user, so that none can push
  // out what others did. Zero: no audit log.
  Bytes audit_size_per_user = mib(4);
  // How long it is known who used what (gpurota report).
  int history_days = 400;
  Expired expired_reservation = Expired::kYield;
  // How long free GPUs are kept for one request that waits for more; then others may have them for
  // as long. Zero: for ever.
  std::chrono::milliseconds keep_free_gpus{3600000};
  std::chrono::seconds longest_wait =
      std::chrono::hours(24);  // then the first is protected; zero: never
  int max_leases_per_user = 64;
  int max_new_leases_per_hour = 3600;  // of a user; so many at once, too
  int max_tenants_per_lease = 1024;
  bool program_notices = true;  // libgpurota tells a program's user why memory was refused, once
  int max_tenants_per_user = 8192;
  int max_connections_per_user = 256;
  // Of answers that a user's programs have not read; while there are more, none of that user's
  // calls is served. And of calls of theirs that are not served yet.
  Bytes unread_size_per_user = mib(16);
  // Of files with the output of a user's jobs and fillers, each of which may take jobs::kLogBound.
  Bytes job_log_size_per_user = gib(2);
  // Of usage, in the store; beyond it a user's oldest are merged.
  int max_usage_rows_per_user = 20000;
  Automatic automatic;
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
