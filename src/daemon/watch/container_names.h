// Names and images of the containers that use GPUs, read by a worker, as engines' files may be on a
// slow disk. A podman of a user's own keeps its files at home, so there the name is that on its
// monitor's command line. State thread only.
//
// Anybody can make a control group and call it as somebody else's container. So files of root's are
// believed of groups that only root can have made, a monitor if it is root's or the group's
// owner's, and what is known is known of a group, not of an id.
#pragma once

#include "containers/container_name.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "sys/worker.h"
#include "watch/container.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

// The result of a search for a container outside of its processes.
struct ContainerFiles {
  containers::ContainerName name;
  std::optional<uid_t> owner;  // of its control group
};

class ContainerNames {
 public:
  // Of further ones nothing is known.
  static constexpr std::size_t kMost = 1024;

  // Runs on a worker, and may outlive us there.
  using Read = std::function<ContainerFiles(const watch::Container& container)>;

  // Both must outlive this.
  ContainerNames(ports::EventLoop& loop, ports::Processes& processes, Read read);

  // As it was read last; on the way reads it again. `pid`: of a process in it. Nothing: it is being
  // read for the first time.
  std::optional<containers::ContainerName> name_of(const watch::Container& container, pid_t pid);

 private:
  struct Known {
    bool reading = false;
    TimePoint wanted{};
    std::optional<TimePoint> asked;
    std::optional<containers::ContainerName> answer;
    // The files do not have its name, so its monitor is asked; the answer comes in `files`.
    bool ask_monitor = false;
    std::optional<pid_t> monitor;
    ContainerFiles files;
  };

  Known* find_or_add(const std::string& group);
  void read(const watch::Container& container, Known& known);
  void take(const watch::Container& container, ContainerFiles files);
  void ask_monitor(const watch::Container& container, pid_t pid, Known& known);
  // The monitor that has started what this process is in; 0: there is none.
  pid_t find_monitor(pid_t pid, std::optional<uid_t> owner);
  void forget_unwanted();

  ports::EventLoop& loop_;
  ports::Processes& processes_;
  const Read read_;
  std::map<std::string, Known> known_;  // by group
  TimePoint tidied_{};
  sys::Worker worker_;
};

// As the engines of the machine keep it whose "/" is `root`.
ContainerNames::Read container_reader(const std::string& root);

}  // namespace gpurota::daemon
