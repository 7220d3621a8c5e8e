// The control socket: connections, their limits, and the varlink calls on them. State thread only.
//
// A connection has one call at a time, and its calls are answered in order. Each user with calls
// gets an equal part of the state thread's time (fair_queue.h). Turns are too short to delay
// others: a stream gives one answer in a turn, and a user's long answers are made one at a time. A
// connection that waits for its turn is not read.
//
// A Hold call occupies its connection until the lease has ended: later calls on that connection
// wait. Calls also wait while their client does not read its answers: nothing more is read from
// such a client, and only one answer is kept for it. While a user's connections together have left
// too much unread (UserBudgets), none of that user's calls is served, and a client that reads
// nothing for long (reader_bounds.h) is disconnected. A client that sends more while its user
// already has too many unserved calls is disconnected, too. A client that is behind with reading
// gets only the newest of the messages that it did not ask for (Hold).
//
// A call that is refused because a GPU looks taken may be repeated once the GPU has been sampled. A
// call that starts a command is repeated once its process has been moved into its cgroup, and once
// the driver limits that cgroup (Outcome::again_after). Meanwhile nothing else on the connection is
// served.
//
// An answer that is read from a file is made on a worker of its user (Outcome::on_worker).
// Meanwhile nothing else on the connection is served.
//
// A call that has changed the store is answered when the change is on the disk. While the store is
// not open, calls that may change or read it wait (ports/durability.h), and other calls do not.
#pragma once

#include "config/config.h"
#include "daemon/control/call_handler.h"
#include "daemon/control/long_answers.h"
#include "daemon/control/reader_bounds.h"
#include "daemon/control/repeated_calls.h"
#include "daemon/control/worker_answers.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/owners.h"
#include "daemon/leases/queue.h"
#include "daemon/users/acceptor.h"
#include "daemon/users/dispatcher.h"
#include "daemon/users/fair_queue.h"
#include "ports/durability.h"
#include "ports/event_loop.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::daemon {

class ControlServer final : public Owners, private DispatchClient<const ControlConnection*> {
 public:
  struct Parts {
    ports::EventLoop& loop;
    const config::Config& config;
    UserBudgets& budgets;
    // Null: each write is on the disk at once.
    ports::Durability* durability = nullptr;
  };

  explicit ControlServer(Parts parts);
  ~ControlServer() override;

  // `calls` must outlive the last connection.
  Result<void> listen(CallHandler& calls, const std::string& path,
                      const ipc::ListenOptions& options);
  // Accepts no more connections. Returns whether a call is not answered yet; a client that only
  // waits for messages does not count.
  bool finish();
  // Notifies the holders of the lease.
  void on_lease_change(const LeaseEntry& entry, bool gone);
  // Notify the clients that wait for the request.
  void on_request(const QueueEntry& entry);
  void on_request_granted(const QueueEntry& entry, const LeaseEntry& lease);
  void on_request_gone(const QueueEntry& entry, const Error& why);
  // Sends another message to the holders of the lease.
  void tell_owner(LeaseId lease, const std::string& message) override;
  // Call when streams may have more answers. Asks each stream for its next answer, soon.
  void on_event();
  // Repeats the calls that wait for this event (Outcome::again_after), once the loop has handled
  // the event.
  void repeat_calls(CallEvent event) { repeated_calls_.on_event(event); }
  // Sends the answers that waited for the disk, and serves the calls that waited for the store.
  void on_durability(const ports::Durability::News& news);

 private:
  using Connection = ControlConnection;

  void welcome(Fd fd, const ipc::Peer& peer, UserBudgets::Held descriptor);
  void on_ready(Connection& connection, unsigned events);
  void read(Connection& connection);
  // Asks for a turn to serve the connection's next call, if there is a call that may be served.
  void enqueue(Connection& connection);
  void serve(const Connection* const& key) override;
  void on_charged(const Connection* const& key) override;
  void serve_one(Connection& connection);
  void go_on(Connection& connection);
  // Sends an answer after the answers that still wait for the disk.
  void answer(Connection& connection, const std::string& message);
  // Sends an answer when the changes up to `upto` are on the disk. If the disk cannot store the
  // changes, sends an error instead.
  void answer_durably(Connection& connection, const std::string& message, std::uint64_t upto);
  void send(Connection& connection, const std::string& message);
  void do_call(Connection& connection, const proto::Call& call);
  void flush(Connection& connection);
  // Whether the connection has something to do in a turn.
  bool has_work(const Connection& connection) const;
  // Sends the next answer of the connection's stream.
  void go_on_streaming(Connection& connection);
  void go_on_answering(Connection& connection);
  // Call when the connection's long answer is complete, or its client has left. Begins the same
  // user's next long answer.
  void end_long_answer(Connection& connection);
  void close(Connection& connection);
  // Sends a message that answers no call. A client that is behind with reading gets only the newest
  // such message, later.
  void tell(Connection& connection, std::string message);
  // Sends the newest message that a client missed, once the client has read everything else.
  void tell_newest(Connection& connection);
  // Resumes a connection from the loop, when no call is in progress. For use after a message that
  // answers no call.
  void resume_soon(const Connection& connection);
  // Continues with a connection, if it still exists.
  void resume(const Connection* key);

  Parts parts_;
  CallHandler* calls_ = nullptr;  // set before anybody connects
  std::map<const Connection*, std::unique_ptr<Connection>> connections_;
  Dispatcher<const Connection*, FairQueue<const Connection*>> dispatcher_;
  LongAnswers long_answers_;
  RepeatedCalls repeated_calls_;
  bool news_posted_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // expires with this: for posted functions
  WorkerAnswers worker_answers_;
  Acceptor acceptor_;
  ReaderBounds bounds_;
};

}  // namespace gpurota::daemon
