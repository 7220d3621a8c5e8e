// The machine's control groups: /proc/PID/cgroup, and cgroup v2 if it is mounted. See
// ports/control_groups.h.
#pragma once

#include "ports/control_groups.h"
#include "ports/event_loop.h"
#include "sys/cgroup.h"
#include "sys/worker.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::sys {

class SystemControlGroups final : public ports::ControlGroups {
 public:
  // `loop` must outlive this object.
  explicit SystemControlGroups(ports::EventLoop& loop) : loop_(loop) {}
  ~SystemControlGroups() override;

  // Sets where control groups are mounted. Until then, or without a mount, no process is in a
  // group.
  void set_mount(std::optional<CgroupMount> mount) { mount_ = std::move(mount); }

  std::string root() override { return mount_ ? mount_->point : ""; }
  std::string of(pid_t pid) override;
  bool is_made_by_root(const std::string& group) override;
  Result<std::string> make_below(pid_t pid, const std::string& name) override;
  void enter(const std::string& group, pid_t pid,
             std::function<void(const Result<void>&)> done) override;
  Result<void> fence(const std::string& group, const DeviceFences& fences) override;
  std::string find(const std::vector<std::string>& groups) override;
  std::vector<std::string> search(
      const std::string& group,
      const std::function<ports::GroupStep(std::string_view name)>& step) override;
  Result<std::vector<pid_t>> members(const std::string& group) override;
  Result<void> kill(const std::string& group) override;
  void remove(const std::string& group, std::function<void(const Result<void>&)> done) override;

 private:
  ports::EventLoop& loop_;
  std::optional<CgroupMount> mount_;
  std::set<std::string> leaving_;  // to be removed by the worker
  int moving_ = 0;                 // calls of enter() that the worker has not answered
  std::optional<Worker> worker_;   // from the first call of enter()
};

}  // namespace gpurota::sys
