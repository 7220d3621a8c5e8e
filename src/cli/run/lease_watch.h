// Holds a lease over a connection of its own (Hold), and reports its end. One thread.
//
// If the daemon goes down, LeaseWatch silently tries to reconnect until the daemon is back: the
// lease is in the daemon's store, and the command continues meanwhile.
#pragma once

#include "client/locate.h"
#include "proto/methods.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::cli {

class LeaseWatch {
 public:
  using Clock = std::chrono::steady_clock;

  LeaseWatch(client::Location location, LeaseId lease)
      : location_(std::move(location)), lease_(lease) {}

  // Connects and sends the call; does not wait for an answer or a daemon.
  Result<void> begin();
  // Makes the next step try to reconnect at once.
  void hurry() { retry_at_ = {}; }
  // Call when fd() is readable or retry_at() is past.
  void step();

  int fd() const { return connection_ ? connection_->fd() : -1; }
  // When to try to reconnect next; nothing while connected or ended.
  std::optional<Clock::time_point> retry_at() const;

  // Set once, when the lease has ended for good. A lease that the daemon does not know counts as
  // lost.
  const std::optional<proto::Ended>& ended() const { return ended_; }
  // Whether the lease is being ended, although its command may still run. reason() says why.
  bool ending() const { return ending_; }
  const std::string& reason() const { return reason_; }
  // The reason as a sentence: "L72 was released by alice (administrator); ending your program".
  std::string end_text() const;
  // The daemon's notices since the last call.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }
  // The number of processes that the command had left running and the daemon has ended.
  int left_behind() const { return left_behind_; }
  // No daemon knows the lease, so only we can end the command.
  bool forgotten() const { return forgotten_; }

 private:
  void take(const proto::Hold::Reply& reply);

  client::Location location_;
  LeaseId lease_;
  std::optional<client::Connection> connection_;
  Clock::time_point retry_at_{};
  std::optional<proto::Ended> ended_;
  bool ending_ = false;
  bool forgotten_ = false;
  int left_behind_ = 0;
  std::string reason_;
  std::vector<std::string> notices_;  // bounded
};

}  // namespace gpurota::cli
