// A daemon for tests: speaks the control protocol on a socket, keeps at most one lease, and lets a
// test set its answers. Never part of a product. Every method may be called from the test's thread;
// the daemon serves on a thread of its own.
#pragma once

#include "base/fd.h"
#include "ipc/framer.h"
#include "ipc/unix_socket.h"
#include "proto/codec.h"

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::client {

class FakeDaemon {
 public:
  // Returns the answer to a call. Nothing: the default answer. Empty text: the daemon closes the
  // connection, as if killed.
  using Handler = std::function<std::optional<std::string>(const proto::Call&)>;

  // Listens in `runtime_dir` until destroyed.
  explicit FakeDaemon(std::string runtime_dir);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // Sets the handler of the next calls, which runs on the daemon's thread.
  void on_call(Handler handler);
  // Sets the reply to Acquire. Call before Acquire.
  void set_acquire_reply(proto::Acquire::Reply reply);
  void set_cgroup(std::optional<std::string> cgroup);
  // While false, the lease outlives its command, as if other processes of the lease still ran.
  void set_ends_with_command(bool ends);

  // Ends the lease: its command gets SIGTERM if it is alive, and the holders get the reason.
  void end_lease(proto::Ended ended, const std::string& reason);
  // Closes all connections and stops listening; start_again() restarts the daemon.
  void stop();
  void start_again();

  // Waits until a call of this method has been answered `count` times; false after ten seconds.
  bool wait_for(std::string_view method, int count = 1);
  std::vector<proto::Params> calls() const;

 private:
  struct Peer {
    Fd fd;
    ipc::Framer framer{proto::kMaxCallBytes};
    bool holds = false;
  };

  void serve();
  bool read_from(Peer& peer);
  std::vector<std::string> answer(const std::string& text, Peer& peer);
  std::string default_answer(const proto::Call& call, Peer& peer);
  void tell_holders(const proto::Hold::Reply& reply, bool continues);
  void finish(proto::Ended ended, const std::string& reason);
  void wake();

  std::string runtime_dir_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable called_;
  std::optional<ipc::Listener> listener_;
  std::list<Peer> peers_;
  Handler handler_;
  proto::Acquire::Reply acquire_reply_;
  std::optional<std::string> cgroup_;
  bool ends_with_command_ = true;
  std::optional<proto::Hold::Reply> ended_;
  pid_t command_pid_ = 0;
  Fd command_;
  std::vector<std::pair<std::string, proto::Params>> calls_;
  bool quit_ = false;
  Fd wake_;
  std::thread thread_;
};

}  // namespace gpurota::client
