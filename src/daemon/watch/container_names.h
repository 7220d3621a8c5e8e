// Names and images of the containers that use GPUs. A worker reads them, as the files of container
// engines may be on a slow disk. A rootless podman keeps its files in its user's home, so the name
// comes from the command line of its monitor. State thread only.
//
// Any user can make a control group with the name of another user's container. So root's files are
// trusted only for groups that only root can have made. A monitor is trusted only if it runs as
// root or as the owner of the group. Results are kept by control group, not by container id.
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

// The name and the owner of a container, from files and control groups, without its processes.
struct ContainerFiles {
  containers::ContainerName name;
  std::optional<uid_t> owner;  // of its control group
};

class ContainerNames {
 public:
  // Containers beyond this number have no known name.
  static constexpr std::size_t kMost = 1024;

  // Runs on a worker, and may still run after the destruction of this object.
  using Read = std::function<ContainerFiles(const watch::Container& container)>;

  // Both must outlive this.
  ContainerNames(ports::EventLoop& loop, ports::Processes& processes, Read read);

  // The name as it was read last; begins another reading if it is due. `pid`: a process in the
  // container. Empty: the first reading has not ended.
  std::optional<containers::ContainerName> name_of(const watch::Container& container, pid_t pid);

 private:
  struct Known {
    bool reading = false;
    TimePoint wanted{};
    std::optional<TimePoint> asked;
    std::optional<containers::ContainerName> answer;
    // The files do not have the name, so the monitor's command line is read; the result goes to
    // `files`.
    bool ask_monitor = false;
    std::optional<pid_t> monitor;
    ContainerFiles files;
  };

  Known* find_or_add(const std::string& group);
  void read(const watch::Container& container, Known& known);
  void take(const watch::Container& container, ContainerFiles files);
  void ask_monitor(const watch::Container& container, pid_t pid, Known& known);
  // The monitor that has started the container of this process; 0: there is none.
  pid_t find_monitor(pid_t pid, std::optional<uid_t> owner);
  void forget_unwanted();

  ports::EventLoop& loop_;
  ports::Processes& processes_;
  const Read read_;
  std::map<std::string, Known> known_;  // by group
  TimePoint tidied_{};
  sys::Worker worker_;
};

// Reads the files of the container engines of the machine whose "/" is `root`.
ContainerNames::Read container_reader(const std::string& root);

}  // namespace gpurota::daemon
