// Control groups for keepers that are children of the daemon. (A keeper that is a unit of systemd
// has the unit's group.) The groups are below the daemon's own, so that no process escapes the
// daemon's limits. Used by Supervisor, on the state thread. Nothing is killed here: a run ends with
// its lease.
#pragma once

#include "ports/event_loop.h"
#include "ports/processes.h"

#include <map>
#include <memory>
#include <string>

namespace gpurota::daemon {

class KeeperCgroups {
 public:
  KeeperCgroups(ports::EventLoop& loop, ports::Processes& processes)
      : loop_(loop), processes_(processes) {}

  // The group for the keeper of a run ("job-7"); empty where there is no control group v2.
  // keeper::Launcher::start() makes the group and begins the keeper in the group, since moving a
  // process takes up to 20 ms, and the loop would wait for the move.
  std::string name(const std::string& run);
  // Notes that this keeper has this group.
  void note(pid_t keeper, std::string cgroup);
  // Takes over a keeper that an earlier daemon started.
  void take_up(pid_t keeper);
  // The keeper has ended, and processes that it leaves behind may be in the group for a while.
  void on_end(pid_t keeper);

  std::size_t left_behind() const { return left_.size(); }

 private:
  struct Left {
    std::string cgroup;
    int tries = 0;
  };
  void arm();
  void tidy();
  // Removes the group, or notes when to try it again.
  void remove(const Left& left);

  ports::EventLoop& loop_;
  ports::Processes& processes_;
  std::map<pid_t, std::string> of_;
  std::multimap<TimePoint, Left> left_;  // by the time of the next try to remove the group
  ports::EventLoop::SourcePtr timer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // expires with this: for removals
};

}  // namespace gpurota::daemon
