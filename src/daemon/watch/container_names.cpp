#include "daemon/watch/container_names.h"

#include "sys/cgroup.h"

#include <sys/stat.h>

namespace gpurota::daemon {
namespace {

// A name is read again after this time, as containers can be renamed.
constexpr Duration kNameFresh = std::chrono::seconds(30);
constexpr Duration kNameUnwanted = std::chrono::minutes(2);
constexpr Duration kTidyPause = std::chrono::seconds(1);
// The most ancestors between a program in a container and the engine's monitor.
constexpr int kMostAncestors = 64;

ContainerFiles read_files(const std::string& root, const watch::Container& container) {
  ContainerFiles files;
  struct stat state {};
  if (::stat(container.group.c_str(), &state) != 0) return files;
  files.owner = state.st_uid;
  if (sys::is_made_by_root(container.group)) {
    files.name = containers::read_container_name(root, container.id);
  }
  return files;
}

}  // namespace

ContainerNames::ContainerNames(ports::EventLoop& loop, ports::Processes& processes, Read read)
    : loop_(loop), processes_(processes), read_(std::move(read)), worker_(loop, "containers") {}

std::optional<containers::ContainerName> ContainerNames::name_of(const watch::Container& container,
                                                                 pid_t pid) {
  if (container.engine == "lxc") return containers::ContainerName{container.id, {}};
  if (container.id.empty()) return containers::ContainerName{};
  Known* const known = find_or_add(container.group);
  if (known == nullptr) return containers::ContainerName{};
  known->wanted = loop_.now();
  const bool old = !known->asked || known->wanted - *known->asked >= kNameFresh;
  if (old && !known->reading) read(container, *known);
  if (known->ask_monitor) ask_monitor(container, pid, *known);
  return known->answer;
}

ContainerNames::Known* ContainerNames::find_or_add(const std::string& group) {
  if (const auto found = known_.find(group); found != known_.end()) return &found->second;
  if (known_.size() >= kMost) forget_unwanted();
  return known_.size() < kMost ? &known_[group] : nullptr;
}

void ContainerNames::read(const watch::Container& container, Known& known) {
  known.asked = loop_.now();
  known.reading = true;
  worker_.run([read = read_, container] { return read(container); },
              [this, container](ContainerFiles files) { take(container, std::move(files)); });
}

void ContainerNames::take(const watch::Container& container, ContainerFiles files) {
  const auto found = known_.find(container.group);
  if (found == known_.end()) return;
  Known& known = found->second;
  known.reading = false;
  known.monitor.reset();
  known.ask_monitor = files.name.name.empty() && container.engine == "podman";
  if (!known.ask_monitor) known.answer = files.name;
  known.files = std::move(files);
}

// Reads the name from the monitor's command line. The known name stays until the command line
// has been read.
void ContainerNames::ask_monitor(const watch::Container& container, pid_t pid, Known& known) {
  if (!known.monitor) known.monitor = find_monitor(pid, known.files.owner);
  containers::ContainerName name = known.files.name;
  if (*known.monitor != 0) {
    const auto command = processes_.command_of(*known.monitor);
    if (!command && command.error().code == Code::kUnavailable) return;
    if (command) {
      name.name = containers::name_by_monitor(*command, container.id);
    } else if (known.answer) {
      name.name = known.answer->name;
    }
  }
  known.ask_monitor = false;
  known.answer = std::move(name);
}

pid_t ContainerNames::find_monitor(pid_t pid, std::optional<uid_t> owner) {
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    const auto info = processes_.read_info(pid);
    if (!info) return 0;
    if (processes_.executable_of(pid).ends_with("/conmon")) {
      return info->uid == 0 || info->uid == owner ? pid : 0;
    }
    pid = info->parent;
  }
  return 0;
}

void ContainerNames::forget_unwanted() {
  const TimePoint now = loop_.now();
  if (now - tidied_ < kTidyPause) return;
  tidied_ = now;
  // An entry that is being read stays, as a job of the worker refers to it. There are never more
  // than kMost such entries.
  std::erase_if(known_, [now](const auto& entry) {
    return !entry.second.reading && now - entry.second.wanted >= kNameUnwanted;
  });
}

ContainerNames::Read container_reader(const std::string& root) {
  return [root](const watch::Container& container) { return read_files(root, container); };
}

}  // namespace gpurota::daemon
