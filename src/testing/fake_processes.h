// Processes and cgroups that exist only in the test.
//
// die() makes a process dead for all handles at once; its on_death callbacks are posted to the
// loop. SIGKILL kills; so do SIGTERM, SIGINT and SIGHUP unless the process is stubborn. Signals are
// recorded, whether they kill or not. Single-threaded.
#pragma once

#include "ports/processes.h"
#include "testing/fake_control_groups.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::testing {

class FakeProcesses final : public ports::Processes {
 public:
  // `loop` runs the death callbacks and must outlive this object.
  explicit FakeProcesses(ports::EventLoop& loop);
  ~FakeProcesses() override;

  struct Spawn {
    uid_t uid = 1000;
    pid_t parent = 1;
    std::vector<std::string> command{"program"};
    std::string cgroup{};     // empty: its parent's
    bool stubborn = false;    // survives all signals but SIGKILL
    bool unkillable = false;  // survives all signals; only die() ends it
    std::string executable{"/usr/bin/program"};
    pid_t pid = 0;  // 0: the next free one; a dead process's pid may be reused
  };
  // A child of a process in a cgroup is in that cgroup, as on Linux.
  pid_t spawn(const Spawn& spawn);
  pid_t spawn() { return spawn(Spawn{}); }
  void die(pid_t pid);
  bool alive(pid_t pid) const;
  void set_stopped(pid_t pid, bool stopped) {
    stopped ? void(stopped_.insert(pid)) : void(stopped_.erase(pid));
  }
  // Processes handle all signals except those set here.
  void set_unhandled(pid_t pid, bool unhandled) {
    unhandled ? void(unhandled_.insert(pid)) : void(unhandled_.erase(pid));
  }
  // From now on command_of fails with this code; nullopt: it returns the command.
  void set_command_error(pid_t pid, std::optional<Code> code) {
    code ? void(command_errors_[pid] = *code) : void(command_errors_.erase(pid));
    ++changes_;
  }
  // Called at each walk over all processes, for example to let time pass.
  void set_on_walk(std::function<void()> on_walk) { on_walk_ = std::move(on_walk); }
  // How many lookups of processes there were.
  std::size_t reads() const { return reads_; }
  // How many handles are open now: each would be a descriptor.
  std::size_t open_handles() const { return *handles_; }
  // The id of the living process with this pid; {pid, 0} if there is none.
  ports::ProcessId id_of(pid_t pid) const;
  const std::vector<std::pair<pid_t, int>>& signals() const { return signals_; }

  void set_user(uid_t uid, const std::string& name) { users_[uid] = name; }
  // Puts the process into a user namespace that `maker` made.
  void set_namespace_maker(pid_t pid, uid_t maker) { makers_[pid] = maker; }
  void set_boot_id(const std::string& id) { boot_id_ = id; }
  // In the pid namespace of `parent`, process `pid` has the number `number`.
  void call(pid_t parent, pid_t pid, pid_t number) { numbers_[{parent, number}] = pid; }
  // While `is_short` is set, lookups fail with kLimit, as without free descriptors.
  void set_short(bool is_short) {
    is_short_ = is_short;
    cgroups_.set_short(is_short);
  }

  Result<HandlePtr> open(const ports::ProcessId& process) override;
  Result<ports::EventLoop::SourcePtr> on_death(Handle& process,
                                               std::function<void()> callback) override;
  Result<ports::ProcessInfo> read_info(pid_t pid) override;
  Result<pid_t> child_called(const ports::ProcessId& parent, pid_t number) override;
  bool is_stopped(pid_t pid) override { return stopped_.count(pid) > 0; }
  Result<Bytes> private_memory(pid_t /*pid*/) override { return Bytes(); }
  bool handles_signal(pid_t pid, int) override { return unhandled_.count(pid) == 0; }
  Result<std::vector<std::string>> command_of(pid_t pid) override;
  std::uint64_t changes() const override { return changes_; }
  Result<std::vector<ports::ProcessInfo>> read_all() override;
  std::string boot_id() override { return boot_id_; }
  std::string user_name(uid_t uid) override;
  std::optional<uid_t> namespace_maker(pid_t pid) override {
    const auto maker = makers_.find(pid);
    return maker == makers_.end() ? std::nullopt : std::optional(maker->second);
  }
  std::string executable_of(pid_t pid) override;
  FakeControlGroups& cgroups() override { return cgroups_; }

 private:
  struct Process;
  class FakeHandle;
  class Death;
  void deliver(Process& process, int signal);

  ports::EventLoop& loop_;
  std::map<pid_t, std::shared_ptr<Process>> processes_;  // living ones
  FakeControlGroups cgroups_;
  std::map<std::pair<pid_t, pid_t>, pid_t> numbers_;  // by parent and its number for the process
  std::set<pid_t> stopped_;
  std::set<pid_t> unhandled_;
  std::map<pid_t, Code> command_errors_;
  std::uint64_t changes_ = 0;
  std::size_t reads_ = 0;
  std::shared_ptr<std::size_t> handles_ = std::make_shared<std::size_t>(0);
  std::vector<std::pair<pid_t, int>> signals_;
  std::map<uid_t, std::string> users_;
  std::map<pid_t, uid_t> makers_;
  std::map<uid_t, std::vector<std::string>> groups_;
  std::string boot_id_ = "11111111-2222-3333-4444-555555555555";
  bool is_short_ = false;
  std::function<void()> on_walk_;
  pid_t next_pid_ = 1000;
  std::uint64_t next_ticks_ = 5000;
};

}  // namespace gpurota::testing
