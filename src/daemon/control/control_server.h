// The control socket: connections, their limits, and the varlink calls on them. State thread only.
//
// One call at a time on a connection, answered in order. Calls are served by user: each user who
// has some gets the same part of the state thread's time (fair_turns.h), in pieces that others do
// not feel: a stream gives one answer in a turn, and of the long answers of a user one is made at a
// time. A connection that waits for its turn is not read. A Hold call keeps its connection until
// its lease has ended; calls sent behind it wait. So do those of a client that does not read its
// answers: nothing more is read from it, and what is kept for it is one answer. While a user's
// connections together have left too much unread (UserBudgets), none of their calls is served; a
// client that then reads nothing for long is disconnected. So is a client that sends more when its
// user's calls that are not served yet are too many already. Of messages that nobody asked for
// (Hold) a reader that is behind gets only the newest.
//
// A call that is refused because a GPU looks taken may be made again once the GPU has been sampled
// (Outcome::again_after_sample): meanwhile nothing else on its connection is served.
//
// An answer that is read from a file is made on a worker of its user (Outcome::on_worker), and
// nothing else on its connection is served until then.
//
// A call that has changed the store is answered when the disk has that, and while the store is not
// open a call that may change it, or reads it, waits (ports/durability.h). Others do not notice.
#pragma once

#include "config/config.h"
#include "daemon/control/call_handler.h"
#include "daemon/control/long_answers.h"
#include "daemon/control/reader_bounds.h"
#include "daemon/control/worker_answers.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/leases/queue.h"
#include "daemon/users/acceptor.h"
#include "daemon/users/fair_turns.h"
#include "daemon/users/served_turns.h"
#include "ports/durability.h"
#include "ports/event_loop.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct ControlConnection;

class ControlServer final : public Owners, private TurnClient<const ControlConnection*> {
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
  // Takes nobody in any more. Whether somebody who has asked is not answered yet; those who only
  // listen do not count.
  bool finish();
  // Tells those who hold it.
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // Tells those who wait.
  void on_request(const QueueEntry& entry);
  void on_request_granted(const QueueEntry& entry, const LeaseEntry& lease);
  void on_request_gone(const QueueEntry& entry, const Error& why);
  // Says something else to those who hold it.
  void tell_owner(LeaseId lease, const std::string& message) override;
  // There may be more answers in the streams.
  void on_event();
  // Makes the calls again that wait for a sample of a GPU (Outcome::again_after_sample), once the
  // loop has handled the sample.
  void on_sample();
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
  // In the order of its answers: behind those that are held back.
  void answer(Connection& connection, const std::string& message);
  // When the disk has the changes up to this one; an error instead if it has not.
  void answer_durably(Connection& connection, const std::string& message, std::uint64_t upto);
  void send(Connection& connection, const std::string& message);
  void do_call(Connection& connection, const proto::Call& call);
  // Makes the call again after the next sample.
  void wait_for_sample(Connection& connection, const proto::Call& call);
  void flush(Connection& connection);
  // Whether there is something to be done for it in a turn.
  bool has_work(const Connection& connection) const;
  // Sends the next answer of its stream.
  void go_on_streaming(Connection& connection);
  void go_on_answering(Connection& connection);
  // The long answer is sent, or its client is gone: the next one of the same user is made.
  void end_long_answer(Connection& connection);
  void close(Connection& connection);
  // To somebody who has not asked just now.
  void tell(Connection& connection, std::string message);
  // Sends a reader that was behind the newest message that it missed, once it is not behind any
  // more.
  void tell_newest(Connection& connection);
  // After an answer that was not asked for just now: going on waits until nobody is in a call.
  void resume_soon(const Connection& connection);
  // Goes on with a connection, if it is still there: it held a lease that is gone, or is broken.
  void resume(const Connection* key);

  Parts parts_;
  CallHandler* calls_ = nullptr;  // set before anybody connects
  std::map<const Connection*, std::unique_ptr<Connection>> connections_;
  ServedTurns<const Connection*, FairTurns<const Connection*>> turns_;
  LongAnswers long_answers_;
  bool news_posted_ = false;
  std::vector<const Connection*> sample_waiters_;  // some may be gone
  ports::EventLoop::SourcePtr sample_timer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // what is posted may come too late
  WorkerAnswers worker_answers_;
  Acceptor acceptor_;
  ReaderBounds bounds_;
};

}  // namespace gpurota::daemon
