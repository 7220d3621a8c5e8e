// The interface that the control socket calls, and the outcome of a call. State thread only.
#pragma once

#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "ports/process_id.h"
#include "proto/codec.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

// The caller of a call.
struct Caller {
  ports::ProcessId process;  // that connected; it may have ended since
  uid_t uid = 0;             // its effective one, when it connected; with a session its user
  std::optional<std::uint32_t> session{};  // by which web session; empty: by none
  // When the call came, as long as it may be made again after the next samples of the GPUs
  // (Outcome::again_after_sample). Empty: the outcome is final.
  std::optional<TimePoint> may_wait_since{};
};

// More answers to one call, made as fast as the reader takes them: never ahead of it.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  // The next answer; nothing for now, or for good if it is over.
  virtual std::optional<std::string> next() = 0;
  virtual bool over() const = 0;
};

// An answer that may take longer than a turn: it is made a piece at a time, each in a turn of its
// user.
class LongAnswer {
 public:
  virtual ~LongAnswer() = default;
  // One more piece, of a fraction of a millisecond. The answer, with the last one.
  virtual std::optional<std::string> go_on() = 0;
  // While the store is not open one that reads it waits.
  virtual bool reads_store() const { return true; }
};

// The outcome of a call: the text of a reply or an error, and the state that the connection is to
// keep.
struct Outcome {
  std::string answer;
  std::optional<LeaseId> acquired;  // ends with the connection unless it is started
  std::optional<LeaseId> started;
  std::optional<LeaseId> held;     // keep the connection informed of this lease
  std::optional<RequestId> waits;  // and of this request, which ends with the connection
  // To a call with `more`: the answers, instead of `answer`.
  std::shared_ptr<AnswerStream> stream{};
  // Instead of `answer`.
  std::shared_ptr<LongAnswer> long_answer{};
  // Instead of `answer`: a text that is the same for many.
  std::shared_ptr<const std::string> shared{};
  // Instead of `answer`: makes it on a worker's thread, as it may wait for a disk or takes long to
  // encode. Uses nothing of the state thread's. Only of calls that change nothing.
  std::function<std::string()> on_worker{};
  // Instead of `answer`: the call is made again after the next sample of a GPU, at the latest a
  // watch_period after it came. Only where Caller::may_wait_since is set.
  bool again_after_sample = false;
};

// Carries calls out, and makes the texts that connections are told.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual Outcome call(const Caller& caller, const proto::Call& call) = 0;
  // Somebody has connected; `groups` as the kernel tells them.
  virtual void greet(uid_t user, const std::vector<gid_t>& groups) = 0;
  // A connection has ended that had acquired this lease and not started it, or waited for this
  // request.
  virtual void abandon(LeaseId lease) = 0;
  virtual void leave(RequestId request) = 0;
  // To the holder of a lease, after a change; and beside that. Empty: the lease is gone.
  virtual std::string describe(const Caller& caller, const LeaseEntry& entry, bool gone) const = 0;
  virtual std::string notice(const Caller& caller, LeaseId lease,
                             const std::string& message) const = 0;
  // To who waits: on a change, and the lease at last.
  virtual std::string waits(const Caller& caller, const QueueEntry& entry) const = 0;
  virtual std::string granted(const Caller& caller, const LeaseEntry& lease) const = 0;
};

}  // namespace gpurota::daemon
