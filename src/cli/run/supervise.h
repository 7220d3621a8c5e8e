// Waits for the command: passes signals on, stops and goes on with it, watches the lease.
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

  // Returns when the command has ended: its wait status.
  int wait_for_command();
  // Then, until the daemon says that the lease has ended: its other processes are being ended. Not
  // longer than `patience`, and not after a signal to us. Where there is no daemon, not at all,
  // unless the command was ended as a daemon does it: one that is just being started again knows
  // why.
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
  bool told_ = false;          // that the lease is ending
  bool interrupted_ = false;   // a signal came after the command had ended
  std::optional<LeaseWatch::Clock::time_point> kill_at_;
};

}  // namespace gpurota::cli
