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
  ports::ProcessId process;  // the process that connected; may have ended since
  uid_t uid = 0;             // effective, as it connected; in a session: the session's user
  std::optional<std::uint32_t> session{};  // the web session of the call; empty: none
  // When the call came. Set only while the call may be repeated after the next sample of a GPU
  // (CallEvent::kSample). Empty: the outcome is final.
  std::optional<TimePoint> may_wait_since{};
};

// After which event a call is repeated whose outcome was not known when it came.
enum class CallEvent {
  kSample,  // of a GPU; the call waits a watch_period at most. Only with Caller::may_wait_since
  kMove,    // LeaseHooks::on_moved()
  kPark,    // ParkKeeper::Parts::on_change()
  kLimit,   // DriverLimits::Parts::on_change(), which comes within kStartPatience
};

// Several answers to one call. Each is made only when the client has read the answers before it.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  // The next answer. Empty: no answer is ready; if over(), none will come.
  virtual std::optional<std::string> next() = 0;
  virtual bool over() const = 0;
};

// An answer that may take longer than a turn, and is thus made in pieces, each in a turn of its
// user.
class LongAnswer {
 public:
  virtual ~LongAnswer() = default;
  // Makes one more piece, in a fraction of a millisecond. The last piece returns the answer.
  virtual std::optional<std::string> go_on() = 0;
  // Whether the answer reads the store, and thus waits while the store is not open.
  virtual bool reads_store() const { return true; }
};

// The outcome of a call: the text of a reply or an error, and the state that the connection is to
// keep. Name the members when you make one: several have the same type.
struct Outcome {
  std::string answer{};
  std::optional<LeaseId> made{};      // the new lease of the answer
  std::optional<LeaseId> acquired{};  // ends with the connection unless it is started
  std::optional<LeaseId> started{};
  std::optional<LeaseId> held{};     // keep the connection informed of this lease
  std::optional<RequestId> waits{};  // inform the connection of this request, which ends with it
  // Instead of `answer`, for a call with `more`: a stream of answers.
  std::shared_ptr<AnswerStream> stream{};
  // Instead of `answer`.
  std::shared_ptr<LongAnswer> long_answer{};
  // Instead of `answer`: a text that many callers share.
  std::shared_ptr<const std::string> shared{};
  // Instead of `answer`: called on a worker thread to make the answer, which may have to wait for a
  // disk or take long to encode. Must not use data of the state thread. Only for calls that change
  // nothing.
  std::function<std::string()> on_worker{};
  // Instead of `answer`: the call is repeated after the next event of this kind.
  std::optional<CallEvent> again_after{};
};

// Carries out calls, and makes the messages to connections.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual Outcome call(const Caller& caller, const proto::Call& call) = 0;
  // A user has connected; `groups` come from the kernel.
  virtual void greet(uid_t user, const std::vector<gid_t>& groups) = 0;
  // The connection that acquired this lease has ended, and the lease was not started.
  virtual void abandon(LeaseId lease) = 0;
  // A connection that waited for this request has ended.
  virtual void leave(RequestId request) = 0;
  // The message to a holder of a lease that has changed.
  virtual std::string describe(const Caller& caller, const LeaseEntry& entry, bool gone) const = 0;
  // The protocol message by which a holder of the lease is shown the text `message`. Empty: the
  // lease is gone.
  virtual std::string notice(const Caller& caller, LeaseId lease,
                             const std::string& message) const = 0;
  // The message to a client that waits, after a change of its request.
  virtual std::string waits(const Caller& caller, const QueueEntry& entry) const = 0;
  // The message to a client that has waited and gets its lease.
  virtual std::string granted(const Caller& caller, const LeaseEntry& lease) const = 0;
};

}  // namespace gpurota::daemon
