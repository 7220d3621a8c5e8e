// Control groups that exist only in the test: those of FakeProcesses, which owns them.
#pragma once

#include "ports/control_groups.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::testing {

class FakeControlGroups final : public ports::ControlGroups {
 public:
  static constexpr const char* kRoot = "/sys/fs/cgroup/fake";

  // `kill_process` sends SIGKILL to a living process.
  explicit FakeControlGroups(std::function<void(pid_t)> kill_process)
      : kill_process_(std::move(kill_process)) {}

  // Puts a living process into `group`, or into its parent's group if `group` is empty. Processes
  // without a parent share one group.
  void put(pid_t pid, const std::string& group, pid_t parent);
  // Makes an empty group, or removes it.
  void add(const std::string& group) { groups_.insert(group); }
  void drop(const std::string& group) { groups_.erase(group); }
  void forget(pid_t pid) { of_process_.erase(pid); }

  // From now on make_below fails with kUnavailable, as in a container.
  void set_available(bool available) { available_ = available; }
  // From now on fence fails with kDenied, as without the capability.
  void set_fences_available(bool available) { fences_available_ = available; }
  // From now on enter() and remove() only note the changes, until finish_moves() makes them.
  void set_moves_wait(bool wait) { moves_wait_ = wait; }
  void finish_moves();
  // As when the daemon is killed.
  void drop_moves() { moves_.clear(); }
  // From now on enter() fails with kUnavailable.
  void set_enterable(bool enterable) { enterable_ = enterable; }
  // Makes this group, and those below it, count as made by a user; all others count as root's.
  void set_made_by_user(const std::string& group) { users_.insert(group); }
  // While `is_short` is set, lookups fail with kLimit, as without free descriptors.
  void set_short(bool is_short) { is_short_ = is_short; }
  // Empty: the group has no fences.
  DeviceFences fences_of(const std::string& group) const;
  int searches = 0;  // the calls of search()
  bool exists(const std::string& group) const { return groups_.count(group) > 0; }

  std::string root() override { return kRoot; }
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
  Result<void> move(const std::string& group, pid_t pid);
  Result<void> remove_now(const std::string& group);

  std::function<void(pid_t)> kill_process_;
  std::map<pid_t, std::string> of_process_;
  std::set<std::string> groups_;
  std::set<std::string> users_;
  std::map<std::string, DeviceFences> fences_;
  std::vector<std::function<void()>> moves_;  // that wait
  bool moves_wait_ = false;
  bool enterable_ = true;
  bool available_ = true;
  bool fences_available_ = true;
  bool is_short_ = false;
};

}  // namespace gpurota::testing
