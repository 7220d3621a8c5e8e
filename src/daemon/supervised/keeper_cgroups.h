// Control groups of their own for keepers that are children of the daemon: where systemd makes
// units of them they have one. Below the daemon's own group, so that nobody leaves a limit. Used by
// Jobs and Fillers, on the state thread. Nothing is killed here: a run's end is that of its lease.
#pragma once

#include "ports/event_loop.h"
#include "ports/processes.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::daemon {

class KeeperCgroups {
 public:
  KeeperCgroups(ports::EventLoop& loop, ports::Processes& processes)
      : loop_(loop), processes_(processes) {}

  // Before the keeper executes; `name` tells it from others: "job-7". Without a writable control
  // group v2: nothing.
  void make(pid_t keeper, const std::string& name);
  // One that an earlier daemon started.
  void take_up(pid_t keeper);
  // It has ended. What it leaves behind may still be there for a while.
  void on_end(pid_t keeper);

  std::size_t left_behind() const { return left_.size(); }

 private:
  struct Left {
    std::string cgroup;
    int tries = 0;
  };
  void tidy();

  ports::EventLoop& loop_;
  ports::Processes& processes_;
  std::map<pid_t, std::string> of_;
  std::vector<Left> left_;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
