// The machine's processes and control groups: pidfds, /proc, cgroup v2. See ports/processes.h.
//
// With hidepid, an unprivileged daemon does not see other users' processes.
#pragma once

#include "ports/processes.h"
#include "sys/command_lines.h"
#include "sys/system_control_groups.h"
#include "sys/user_names.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::sys {

class SystemProcesses : public ports::Processes {
 public:
  // `loop` reports deaths and must outlive this object.
  explicit SystemProcesses(ports::EventLoop& loop);
  // Reads the boot id and where control groups are mounted. Fails only on a shortage, such as of
  // descriptors; also succeeds if the machine has no boot id or no control groups. The daemon needs
  // them to recognise processes that ran before it started.
  Result<void> read_machine();

  Result<HandlePtr> open(const ports::ProcessId& process) override;
  void set_admission(Admission admission) override { admission_ = std::move(admission); }
  Result<ports::EventLoop::SourcePtr> on_death(Handle& process,
                                               std::function<void()> callback) override;
  Result<ports::ProcessInfo> read_info(pid_t pid) override;
  Result<pid_t> child_called(const ports::ProcessId& parent, pid_t number) override;
  bool is_stopped(pid_t pid) override;
  Result<Bytes> private_memory(pid_t pid) override;
  bool handles_signal(pid_t pid, int signal) override;
  Result<std::vector<std::string>> command_of(pid_t pid) override;
  std::uint64_t changes() const override { return commands_.changes(); }
  Result<std::vector<ports::ProcessInfo>> read_all() override;
  std::string boot_id() override;
  std::string user_name(uid_t uid) override;
  uid_t account_of(uid_t uid) override;
  std::optional<uid_t> namespace_maker(pid_t pid) override;
  std::string executable_of(pid_t pid) override;
  ports::ControlGroups& cgroups() override { return cgroups_; }

 private:
  class SystemHandle;

  ports::EventLoop& loop_;
  Admission admission_;
  SystemControlGroups cgroups_{loop_};
  std::string boot_id_;
  UserNames names_;
  CommandLines commands_;
};

}  // namespace gpurota::sys
