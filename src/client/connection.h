// A blocking connection to gpurotad: one call at a time, or one stream of answers.
//
// Used by the CLI and the other edges, by one thread at a time. Never raises SIGPIPE. After an
// error that is not the daemon's own answer the connection is of no more use.
//
// A daemon that is being restarted may hang up on a call. The call is sent to the next daemon where
// that cannot do anything twice: it only reads, or the last daemon has not read it.
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

// How long a daemon that is there may take: it answers every call from memory or with one look at
// the driver, but a driver that is loading its GPUs' state has been seen to take seconds.
inline constexpr milliseconds kAnswerTimeout{30000};
inline constexpr milliseconds kConnectTimeout{5000};

class Connection {
 public:
  // kUnavailable, kDenied and kTimeout as from ipc::connect_unix.
  static Result<Connection> open(const std::string& socket, milliseconds timeout = kConnectTimeout);

  // The daemon's answer, or its error. kGone: it closed the connection. kTimeout.
  template <class Method>
  Result<typename Method::Reply> call(const Method& params, milliseconds timeout = kAnswerTimeout);

  // A call that is text already, and the answer as the daemon has written it, which may be an error
  // of it.
  Result<std::string> forward(const std::string& json, bool read_only,
                              milliseconds timeout = kAnswerTimeout);

  // Asks for a stream (`more`). Its answers come from next_answer(); nothing else may be called.
  template <class Method>
  Result<void> start_stream(const Method& params, milliseconds timeout = kAnswerTimeout);
  // The next answer if one is here already: never waits. To wait, poll fd() for input.
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
  // Reads what is there. False: nothing was.
  Result<bool> fill();
  Result<void> wait(short events, Clock::time_point deadline) const;

  std::string socket_;
  Fd fd_;
  ipc::Framer framer_;
  bool bound_ = false;  // something may end with this connection: it is not replaced
};

}  // namespace gpurota::client
