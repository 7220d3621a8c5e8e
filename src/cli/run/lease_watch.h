// Holds a lease over a connection of its own (Hold), and says when it has ended. One thread.
//
// A daemon that goes away is waited for and asked again, quietly: the lease is in its store, and
// the command runs on meanwhile.
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

  // Connects and asks; waits for neither answer nor daemon.
  Result<void> begin();
  // A daemon that went away is to be tried again at the next step.
  void hurry() { retry_at_ = {}; }
  // Call when fd() is readable or retry_at() is past.
  void step();

  int fd() const { return connection_ ? connection_->fd() : -1; }
  // When to try to reach a daemon that went away; nothing while connected or ended.
  std::optional<Clock::time_point> retry_at() const;

  // Set once, when the lease has ended for good. A lease that the daemon does not know is lost.
  const std::optional<proto::Ended>& ended() const { return ended_; }
  // The lease is being ended, although its command may still run; and in the end, why.
  bool ending() const { return ending_; }
  const std::string& reason() const { return reason_; }
  // "L72 was released by alice (administrator); ending your program": that in a sentence.
  std::string end_text() const;
  // The daemon's notices since the last call.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }
  // So many processes the command had left running, which the daemon has ended.
  int left_behind() const { return left_behind_; }
  // No daemon knows it, so nobody but us will end the command.
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
