// The control socket: connections, their limits, and the varlink calls on them. State thread only.
//
// One call at a time on a connection, answered in order. Calls are served by user: each user who has some gets the same part of the
// state thread's time (fair_turns.h), in pieces that others do not feel: a stream gives one answer in a turn, and of the long answers of
// a user one is made at a time. A connection that waits for its turn is not read. A Hold call keeps its connection until its
// lease has ended; calls sent behind it wait. So do those of a client that does not read its answers:
// nothing more is read from it, and what is kept for it is one answer. While a user's connections together have left too
// much unread (UserBudgets), none of their calls is served; who then reads nothing for long is hung up on. So is who sends
// more when what its user has sent and is not served yet is too much already. What is told without being
// asked for (Hold) is only the newest for a reader that is behind.
//
// A call that has changed the store is answered when the disk has that, and while the store is not open a call that may change it, or
// reads it, waits (ports/durability.h). Others do not notice.
#pragma once

#include "config/config.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/leases/queue.h"
#include "daemon/users/doorman.h"
#include "daemon/users/fair_turns.h"
#include "daemon/users/served_turns.h"
#include "ports/durability.h"
#include "ports/event_loop.h"
#include "ports/process_id.h"
#include "proto/codec.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// Who calls.
struct Caller {
  ports::ProcessId process;  // that connected; it may have ended since
  uid_t uid = 0;             // its effective one, when it connected; with a session its user
  std::optional<std::uint32_t> session{};  // by which web session; empty: by none
};

// More answers to one call, made as fast as the reader takes them: never ahead of it.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  // The next answer; nothing for now, or for good if it is over.
  virtual std::optional<std::string> next() = 0;
  virtual bool over() const = 0;
};

// An answer that may take longer than a turn: it is made a piece at a time, each in a turn of its user.
class LongAnswer {
 public:
  virtual ~LongAnswer() = default;
  // One more piece, of a fraction of a millisecond. The answer, with the last one.
  virtual std::optional<std::string> go_on() = 0;
};

// What a call comes to: the text of a reply or an error, and what the connection is to remember.
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
};

// What calls do, and the texts that connections are told.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual Outcome call(const Caller& caller, const proto::Call& call) = 0;
  // Somebody has connected; `groups` as the kernel tells them.
  virtual void greet(uid_t user, const std::vector<gid_t>& groups) = 0;
  // A connection has ended that had acquired this lease and not started it, or waited for this request.
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

struct ControlConnection;

class ControlServer final : public LeaseListener,
                            public RequestListener,
                            public EventListener,
                            public Owners,
                            private TurnClient<const ControlConnection*> {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    UserBudgets& budgets;
    // Null: what is stored is on the disk at once.
    ports::Durability* durability = nullptr;
  };

  explicit ControlServer(Parts parts);
  ~ControlServer() override;

  // `calls` outlives the last connection.
  Result<void> listen(CallHandler& calls, const std::string& path,
                      const ipc::ListenOptions& options);
  // Takes nobody in any more. Whether somebody who has asked is not answered yet; those who only listen do not count.
  bool finish();
  // Tells those who hold it.
  void on_lease_change(const LeaseEntry& entry, bool gone) override;
  // Tells those who wait.
  void on_request(const QueueEntry& entry) override;
  void on_request_granted(const QueueEntry& entry, const LeaseEntry& lease) override;
  void on_request_gone(const QueueEntry& entry, const Error& why) override;
  // Says something else to those who hold it.
  void tell_owner(LeaseId lease, const std::string& message) override;
  // There may be more answers in the streams.
  void on_event() override;
  // Says what was held back until the disk has it, and serves the calls that waited for the store.
  void on_durability(const ports::Durability::News& news);

 private:
  using Connection = ControlConnection;

  void welcome(Fd fd, const ipc::Peer& peer, UserBudgets::Held descriptor);
  void on_ready(Connection& connection, unsigned events);
  void read(Connection& connection);
  // Serves its next call in its user's turn, if there is one and it may be served.
  void want_turn(Connection& connection);
  void serve(const Connection* const& key) override;
  void after_turn(const Connection* const& key) override;
  void serve_one(Connection& connection);
  void go_on(Connection& connection);
  void watch(Connection& connection);
  // In the order of its answers: behind those that are held back.
  void answer(Connection& connection, const std::string& message);
  // When the disk has the changes up to this one; an error instead if it has not.
  void answer_durably(Connection& connection, const std::string& message, std::uint64_t upto);
  void send(Connection& connection, const std::string& message);
  void do_call(Connection& connection, const proto::Call& call);
  bool must_wait(const proto::Call& call) const;
  void flush(Connection& connection);
  // Waits until the client takes what is there for it, or for its next turn, and reads nothing meanwhile.
  void block(Connection& connection, bool blocked);
  // Whether there is something to be done for it in a turn.
  bool has_work(const Connection& connection) const;
  // Sends the next answer of its stream.
  void go_on_streaming(Connection& connection);
  void begin_long_answer(Connection& connection, std::shared_ptr<LongAnswer> work);
  void go_on_answering(Connection& connection);
  // It is answered, or nobody is left to hear it: its user's next one is made.
  void end_long_answer(Connection& connection);
  void close(Connection& connection);
  // To somebody who has not asked just now.
  void tell(Connection& connection, std::string message);
  // What it was not told as it was behind, once it is not.
  void tell_newest(Connection& connection);
  // Counts what is kept for it against its user.
  void count(Connection& connection);
  // The same of what it has sent and is not served yet. False if that is too much.
  bool count_unserved(Connection& connection);
  // Whether its user has left too much unread; it is then gone on with when there is less.
  bool held_back(Connection& connection);
  void go_on_soon(uid_t user);
  void wait_for_readers();
  void end_idle_readers();
  // After an answer that was not asked for just now: going on waits until nobody is in a call.
  void resume_soon(const Connection& connection);
  // Goes on with a connection, if it is still there: it held a lease that is gone, or is broken.
  void resume(const Connection* key);

  Parts parts_;
  CallHandler* calls_ = nullptr;  // set before anybody connects
  std::map<const Connection*, std::unique_ptr<Connection>> connections_;
  ServedTurns<const Connection*, FairTurns<const Connection*>> turns_;
  // Those with a long answer; only the first of each user's is being made.
  std::map<uid_t, std::deque<const Connection*>> long_answers_;
  bool news_posted_ = false;
  ports::EventLoop::SourcePtr patience_;                  // while somebody is held back
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // what is posted may come too late
  Doorman doorman_;
};

}  // namespace gpurota::daemon
