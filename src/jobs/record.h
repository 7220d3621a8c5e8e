// A job as text: the definition by its owner (JobSpec), its state (JobState), the orders of its
// keeper, and the keeper's report. The text consists of pairs, "key NUL value NUL", so that foreign
// bytes are kept exactly; a key that is not known is ignored, so that versions can differ. Pure.
#pragma once

#include "base/result.h"
#include "jobs/array.h"
#include "jobs/log_ring.h"
#include "jobs/supervision.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gpurota::jobs {

// The most text of one job: as much as a call of the control protocol can carry.
inline constexpr std::size_t kMaxArguments = 1024;
inline constexpr std::size_t kMaxSpecBytes = std::size_t{60} << 10;

struct JobSpec {
  std::string name;                  // unique among the owner's; see check_spec
  std::vector<std::string> options;  // of `gpurota run`
  std::vector<std::string> command;
  std::string workdir;  // absolute; empty: the owner's home
  std::vector<std::pair<std::string, std::string>> environment;
  RestartPolicy restart = RestartPolicy::kNo;
  std::vector<std::string> after;                     // started after these at boot (--boot-after)
  std::vector<std::string> after_success, after_end;  // jobs/chain.h
  Output output = Output::kFile;
  bool tty = false;  // the output goes to a terminal
  // An array: the indices of its items. Where each item has a command of its own, `each` has them
  // in that order, and `command` is empty.
  Indices array{};
  std::vector<std::vector<std::string>> each{};
  int at_once = 0;  // an array: the most items that run at a time; 0: not an array
  bool is_array() const { return !array.empty(); }
  bool operator==(const JobSpec&) const = default;
};

// kInvalid, with what to write instead. Administrators may change the options of other users' jobs,
// so options must not choose what is executed: '--' would begin the command, and the daemon of
// another --runtime-dir could name libraries to load.
Result<void> check_spec(const JobSpec& spec);

// The spec of one item of an array, with its index in GPUROTA_ARRAY_INDEX.
JobSpec item_spec(const JobSpec& spec, std::int64_t index);
// The bound of the log of a job, or of each item of an array.
Bytes log_bound(const JobSpec& spec);
// The bound of all logs of a job together.
Bytes logs_bound(const JobSpec& spec);

std::string encode(const JobSpec& spec);
Result<JobSpec> decode_spec(std::string_view text);
std::string encode(const JobState& state);
Result<JobState> decode_state(std::string_view text);

// The orders for one run.
struct KeeperOrders {
  uid_t uid = 0;
  std::string user;     // of the account, which must still have `uid`
  std::string gpurota;  // the program, absolute
  std::string runtime_dir;
  JobSpec spec;
  Bytes log_bound = kLogBound;
  bool operator==(const KeeperOrders&) const = default;
};
std::string encode(const KeeperOrders& orders);
Result<KeeperOrders> decode_orders(std::string_view text);

// The exit status of `gpurota run` for its own failures.
inline constexpr int kRunFailed = 125;

struct KeeperReport {
  bool signalled = false;
  int code = 0;
  std::string cannot_start;  // not empty: why nothing ran
  bool operator==(const KeeperReport&) const = default;
};
std::string encode(const KeeperReport& report);
Result<KeeperReport> decode_report(std::string_view text);

// Files in the directory of one job. The keeper gets the path of this directory.
inline constexpr const char* kOrdersFile = "orders";
inline constexpr const char* kReportFile = "report";
// Locked by the keeper while it lives, so that a run is never started twice. The keeper makes the
// file or empties it. Before the start of a run is stored, the daemon writes kUnbegun into a file
// that an earlier run has left. So a run whose lock file is missing or not empty never began, and
// can be started again.
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kUnbegun = "not begun\n";
// Made by gpurota 0.9 and older instead, even for the first run: exists until the run has begun.
inline constexpr const char* kOldUnbegunFile = "unbegun";
inline constexpr const char* kLogFiles[] = {"log.a", "log.b"};

}  // namespace gpurota::jobs
