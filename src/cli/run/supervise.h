// Waits for the command: passes signals on, stops and continues with it, watches the lease.
#pragma once

#include "cli/run/lease_watch.h"
#include "cli/run/signals.h"

#include <chrono>
#include <optional>

#include <sys/types.h>

namespace gpurota::cli {

class Supervisor {
 public:
  Supervisor(pid_t command, LeaseWatch& watch, const Signals& signals)
      : command_(command), watch_(watch), signals_(signals) {}

  // Returns the wait status when the command has ended.
  int wait_for_command();
  // Call after wait_for_command(). Waits until the daemon reports the end of the lease, whose other
  // processes are being ended. Waits at most `patience`, and not after a signal to us. Without a
  // daemon it does not wait, unless the command was ended by the daemon's signals: then the daemon
  // is probably just restarting, and will report the reason.
  void wait_for_lease(std::chrono::milliseconds patience);
  // Whether the lease was seen to end while the command still ran.
  bool lease_ended_first() const { return told_; }

 private:
  void poll_once(std::optional<std::chrono::milliseconds> longest);
  void on_signals();
  void reap();
  void on_stopped(int signal);
  void on_lease();

  pid_t command_;
  LeaseWatch& watch_;
  const Signals& signals_;
  std::optional<int> status_;  // of the command, when it has ended
  bool told_ = false;          // the user was told that the lease is ending
  bool interrupted_ = false;   // a signal came after the command had ended
  std::optional<LeaseWatch::Clock::time_point> kill_at_;
};

}  // namespace gpurota::cli
