// A job: a command that the daemon looks after, with the words for its restarts, its output, the
// ends of its runs and its phases. Plain data.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::jobs {

// Whether a job is started again when a run ends by itself.
enum class RestartPolicy { kNo, kOnFailure, kAlways };
const char* to_string(RestartPolicy policy);  // "no", "on-failure", "always"
std::optional<RestartPolicy> parse_restart_policy(std::string_view word);

// Where the output of a job goes.
enum class Output { kFile, kJournal };
const char* to_string(Output output);  // "file", "journal"
std::optional<Output> parse_output(std::string_view word);

// Why a run ended. If the daemon ended the run (stop, time, limit), that is the reason, even if the
// run then exits with a code of its own.
enum class EndReason {
  kExited,       // with `code`
  kSignalled,    // by signal `code`, not one of ours
  kStopped,      // by its owner or an administrator
  kTimeout,      // longer than --timeout
  kOverLimit,    // held more GPU memory than its lease allows
  kLeaseLost,    // its lease was released, or its GPU is gone
  kBooking,      // its lease left for a booking
  kCannotStart,  // never ran: no such command, no such account, …
  kReboot,       // the machine went down
  kUnknown       // it ended while no daemon could see how
};
const char* to_string(EndReason reason);  // "exited", "signalled", …: stable
std::optional<EndReason> parse_end_reason(std::string_view word);

struct RunEnd {
  std::optional<WallTime> started;  // empty: it never ran
  WallTime ended;
  EndReason reason = EndReason::kUnknown;
  int code = 0;        // exit code or signal, as far as it is known
  std::string detail;  // foreign bytes perhaps; a sentence for people, or empty
  // The most GPU memory that its lease used, all GPUs together; empty: nobody knows.
  std::optional<Bytes> most_used{};

  bool is_success() const { return reason == EndReason::kExited && code == 0; }
  bool operator==(const RunEnd&) const = default;
};

// kWaiting: waits in the queue for its lease. kBackingOff: waits for the time of its next start.
// kFinished: ended and not to be started again. kFailed: ended badly and not to be started again.
// kChained: waits for the end of other jobs (jobs/chain.h). kCancelled: cannot start, because of
// how another job has ended.
enum class Phase {
  kStopped,
  kWaiting,
  kRunning,
  kStopping,
  kBackingOff,
  kFinished,
  kFailed,
  kChained,
  kCancelled
};
const char* to_string(Phase phase);  // "stopped", "waiting", …: stable
std::optional<Phase> parse_phase(std::string_view word);

}  // namespace gpurota::jobs
