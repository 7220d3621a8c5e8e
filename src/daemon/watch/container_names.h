// What people call the containers that use GPUs, and their images: read by a worker, as engines' files may be on a slow disk. A podman of a user's
// own keeps its files at home, so there the name is that on its monitor's command line. State thread only.
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

class ContainerNames {
 public:
  // Of the ones that were asked for last.
  static constexpr std::size_t kMost = 1024;

  // Runs on a worker, and may outlive us there.
  using Read = std::function<containers::ContainerName(const std::string& id)>;

  // Both must outlive this.
  ContainerNames(
      ports::EventLoop& loop, ports::Processes& processes,
      Read read = [](const std::string& id) { return containers::read_container_name("/", id); });

  // As it was read last; on the way reads it again. `pid`: of a process in it. Nothing: it is being read for the first time.
  std::optional<containers::ContainerName> name_of(const watch::Container& container, pid_t pid);

 private:
  struct Known {
    bool reading = false;
    TimePoint wanted{};
    std::optional<TimePoint> asked;
    std::optional<containers::ContainerName> name;
    bool ask_monitor = false;  // the files do not have its name
  };

  void read(const std::string& id, Known& known);
  void take(const std::string& id, containers::ContainerName name);
  void ask_monitor(const watch::Container& container, pid_t pid, Known& known);
  // The process number of the monitor that has started what this process is in; 0: there is none.
  pid_t find_monitor(pid_t pid);
  void forget_unwanted();

  ports::EventLoop& loop_;
  ports::Processes& processes_;
  const Read read_;
  std::map<std::string, Known> known_;
  sys::Worker worker_;
};

// As the engines of this machine keep it.
containers::ContainerName read_container_name_here(const std::string& id);

}  // namespace gpurota::daemon
