#include "daemon/watch/container_names.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Containers can be renamed.
constexpr Duration kNameFresh = std::chrono::seconds(30);
constexpr Duration kNameUnwanted = std::chrono::minutes(2);
// From a program in a container to its engine's monitor.
constexpr int kMostAncestors = 64;

}  // namespace

ContainerNames::ContainerNames(ports::EventLoop& loop, ports::Processes& processes, Read read)
    : loop_(loop), processes_(processes), read_(std::move(read)), worker_(loop, "containers") {}

std::optional<containers::ContainerName> ContainerNames::name_of(const watch::Container& container,
                                                                 pid_t pid) {
  if (container.engine == "lxc") return containers::ContainerName{container.id, {}};
  if (container.id.empty()) return containers::ContainerName{};
  if (!known_.contains(container.id)) forget_unwanted();
  Known& known = known_[container.id];
  known.wanted = loop_.now();
  const bool old = !known.asked || known.wanted - *known.asked >= kNameFresh;
  if (old && !known.reading) read(container.id, known);
  if (known.ask_monitor) ask_monitor(container, pid, known);
  return known.name;
}

void ContainerNames::read(const std::string& id, Known& known) {
  known.asked = loop_.now();
  known.reading = true;
  worker_.run([read = read_, id] { return read(id); },
              [this, id](containers::ContainerName name) { take(id, std::move(name)); });
}

void ContainerNames::take(const std::string& id, containers::ContainerName name) {
  const auto found = known_.find(id);
  if (found == known_.end()) return;
  found->second.reading = false;
  found->second.ask_monitor = name.name.empty();
  found->second.name = std::move(name);
}

void ContainerNames::ask_monitor(const watch::Container& container, pid_t pid, Known& known) {
  known.ask_monitor = false;
  const pid_t monitor = container.engine == "podman" ? find_monitor(pid) : 0;
  if (monitor == 0) return;
  const auto command = processes_.command_of(monitor);
  known.ask_monitor = !command && command.error().code == Code::kUnavailable;
  if (command) known.name->name = containers::name_by_monitor(*command, container.id);
}

pid_t ContainerNames::find_monitor(pid_t pid) {
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    if (processes_.executable_of(pid).ends_with("/conmon")) return pid;
    const auto info = processes_.read_info(pid);
    if (!info) return 0;
    pid = info->parent;
  }
  return 0;
}

void ContainerNames::forget_unwanted() {
  const TimePoint now = loop_.now();
  std::erase_if(known_,
                [now](const auto& entry) { return now - entry.second.wanted >= kNameUnwanted; });
  if (known_.size() < kMost) return;
  known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.wanted < b.second.wanted;
  }));
}

containers::ContainerName read_container_name_here(const std::string& id) {
  return containers::read_container_name("/", id);
}

}  // namespace gpurota::daemon
