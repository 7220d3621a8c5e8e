// A blocking connection to gpurotad: one call at a time, or one stream of answers.
//
// Used by the CLI and other clients, by one thread at a time. Never raises SIGPIPE. After any error
// other than the daemon's own answer the connection must not be used again.
//
// A daemon that is being restarted may close the connection during a call. The call is then sent to
// the next daemon, if sending it again cannot do anything twice: the call only reads, or the last
// daemon has not read it.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "ipc/framer.h"
#include "proto/codec.h"

#include <chrono>
#include <optional>
#include <string>

namespace gpurota::client {

using std::chrono::milliseconds;

// How long a running daemon may take to answer. Every call is answered from memory or with one
// query of the driver, but a driver that is loading its GPUs' state has been seen to take seconds.
inline constexpr milliseconds kAnswerTimeout{30000};
inline constexpr milliseconds kConnectTimeout{5000};

class Connection {
 public:
  // kUnavailable, kDenied and kTimeout as from ipc::connect_unix.
  static Result<Connection> open(const std::string& socket, milliseconds timeout = kConnectTimeout);

  // The daemon's answer, or its error. kGone: it closed the connection. kTimeout.
  template <class Method>
  Result<typename Method::Reply> call(const Method& params, milliseconds timeout = kAnswerTimeout);

  // Sends a call that is already JSON, and returns the daemon's answer unchanged, which may be an
  // error.
  Result<std::string> forward(const std::string& json, bool read_only,
                              milliseconds timeout = kAnswerTimeout);

  // Asks for a stream (`more`). next_answer() returns its answers; no other call may follow.
  template <class Method>
  Result<void> start_stream(const Method& params, milliseconds timeout = kAnswerTimeout);
  // The next answer if it has arrived; never waits. To wait, poll fd() for input.
  template <class Method>
  Result<std::optional<proto::Answer<Method>>> next_answer();

  int fd() const { return fd_.get(); }

 private:
  using Clock = std::chrono::steady_clock;

  Connection(std::string socket, Fd fd)
      : socket_(std::move(socket)), fd_(std::move(fd)), framer_(proto::kMaxReplyBytes) {}

  Result<std::string> ask(const std::string& json, bool read_only, Clock::time_point deadline);
  Result<void> come_back(Clock::time_point deadline);
  Result<void> send(std::string json, Clock::time_point deadline);
  Result<std::string> receive(Clock::time_point deadline);
  // Reads what has arrived. False: nothing.
  Result<bool> fill();
  Result<void> wait(short events, Clock::time_point deadline) const;

  std::string socket_;
  Fd fd_;
  ipc::Framer framer_;
  bool bound_ = false;  // a lease may end with this connection: do not replace it
};

}  // namespace gpurota::client
