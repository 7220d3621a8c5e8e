#include "testing/fake_processes.h"

#include <fmt/core.h>

#include <csignal>

namespace gpurota::testing {

struct FakeProcesses::Process {
  ports::ProcessInfo info;
  std::vector<std::string> command;
  std::string executable;
  bool stubborn = false;
  bool unkillable = false;
  bool alive = true;
  std::vector<std::weak_ptr<std::function<void()>>> watchers;
};

class FakeProcesses::FakeHandle final : public Handle {
 public:
  FakeHandle(FakeProcesses& owner, std::shared_ptr<Process> process)
      : owner_(owner), process_(std::move(process)), handles_(owner.handles_) {
    ++*handles_;
  }
  ~FakeHandle() override { --*handles_; }
  pid_t pid() const override { return process_->info.pid; }
  bool alive() const override { return process_->alive; }
  Result<void> send_signal(int signal) override {
    if (process_->alive) owner_.deliver(*process_, signal);
    return {};
  }
  Process& process() { return *process_; }

 private:
  FakeProcesses& owner_;
  std::shared_ptr<Process> process_;
  std::shared_ptr<std::size_t> handles_;
};

class FakeProcesses::Death final : public ports::EventLoop::Source {
 public:
  explicit Death(std::shared_ptr<std::function<void()>> callback)
      : callback_(std::move(callback)) {}

 private:
  std::shared_ptr<std::function<void()>> callback_;
};

namespace {

void post_if_watched(ports::EventLoop& loop, std::weak_ptr<std::function<void()>> watcher) {
  loop.post([watcher = std::move(watcher)] {
    const auto callback = watcher.lock();
    if (callback && *callback) std::exchange(*callback, nullptr)();
  });
}

}  // namespace

namespace {

tl::unexpected<Error> out_of_descriptors() { return fail(Code::kLimit, "out of descriptors"); }

}  // namespace

FakeProcesses::FakeProcesses(ports::EventLoop& loop)
    : loop_(loop), cgroups_([this](pid_t pid) { deliver(*processes_[pid], SIGKILL); }) {}

FakeProcesses::~FakeProcesses() = default;

pid_t FakeProcesses::spawn(const Spawn& spawn) {
  auto process = std::make_shared<Process>();
  process->info.pid = spawn.pid != 0 ? spawn.pid : next_pid_++;
  process->info.parent = spawn.parent;
  process->info.uid = spawn.uid;
  process->info.start_ticks = next_ticks_++;
  process->command = spawn.command;
  process->stubborn = spawn.stubborn;
  process->unkillable = spawn.unkillable;
  process->executable = spawn.executable;
  const pid_t pid = process->info.pid;
  if (alive(pid)) die(pid);
  cgroups_.put(pid, spawn.cgroup, spawn.parent);
  processes_[pid] = std::move(process);
  return pid;
}

void FakeProcesses::die(pid_t pid) {
  const auto at = processes_.find(pid);
  if (at == processes_.end()) return;
  const std::shared_ptr<Process> process = at->second;
  processes_.erase(at);
  cgroups_.forget(pid);
  process->alive = false;
  for (auto& [other_pid, other] : processes_) {
    if (other->info.parent == pid) other->info.parent = 1;
  }
  for (const auto& watcher : process->watchers) post_if_watched(loop_, watcher);
}

bool FakeProcesses::alive(pid_t pid) const { return processes_.count(pid) > 0; }

ports::ProcessId FakeProcesses::id_of(pid_t pid) const {
  const auto at = processes_.find(pid);
  return at == processes_.end() ? ports::ProcessId{pid, 0} : at->second->info.id();
}

void FakeProcesses::deliver(Process& process, int signal) {
  const pid_t pid = process.info.pid;
  signals_.emplace_back(pid, signal);
  const bool ends =
      signal == SIGKILL ||
      (!process.stubborn && (signal == SIGTERM || signal == SIGINT || signal == SIGHUP));
  if (ends && !process.unkillable) die(pid);
}

Result<ports::Processes::HandlePtr> FakeProcesses::open(const ports::ProcessId& process) {
  if (is_short_) return out_of_descriptors();
  const auto at = processes_.find(process.pid);
  if (at == processes_.end() || at->second->info.id() != process) {
    return fail(Code::kGone, fmt::format("process {} has ended", process.pid));
  }
  return std::make_unique<FakeHandle>(*this, at->second);
}

Result<ports::EventLoop::SourcePtr> FakeProcesses::on_death(Handle& process,
                                                            std::function<void()> callback) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(callback));
  Process& target = static_cast<FakeHandle&>(process).process();
  if (target.alive) {
    target.watchers.push_back(watcher);
  } else {
    post_if_watched(loop_, watcher);
  }
  return std::make_unique<Death>(std::move(watcher));
}

Result<ports::ProcessInfo> FakeProcesses::read_info(pid_t pid) {
  ++reads_;
  if (is_short_) return out_of_descriptors();
  const auto at = processes_.find(pid);
  if (at == processes_.end()) return fail(Code::kGone, fmt::format("process {} has ended", pid));
  return at->second->info;
}

Result<std::vector<std::string>> FakeProcesses::command_of(pid_t pid) {
  if (const auto error = command_errors_.find(pid); error != command_errors_.end()) {
    return fail(error->second, "its command is not known");
  }
  const auto at = processes_.find(pid);
  if (at == processes_.end()) return fail(Code::kGone, fmt::format("process {} has ended", pid));
  return at->second->command;
}

Result<std::vector<ports::ProcessInfo>> FakeProcesses::read_all() {
  if (on_walk_) on_walk_();
  if (is_short_) return out_of_descriptors();
  std::vector<ports::ProcessInfo> infos;
  for (const auto& [pid, process] : processes_) infos.push_back(process->info);
  return infos;
}

Result<pid_t> FakeProcesses::child_called(const ports::ProcessId& parent, pid_t number) {
  const auto at = numbers_.find({parent.pid, number});
  return at == numbers_.end() ? number : at->second;
}

std::string FakeProcesses::user_name(uid_t uid) {
  const auto at = users_.find(uid);
  return at == users_.end() ? std::to_string(uid) : at->second;
}

std::string FakeProcesses::executable_of(pid_t pid) {
  const auto at = processes_.find(pid);
  return at == processes_.end() ? "" : at->second->executable;
}

}  // namespace gpurota::testing
