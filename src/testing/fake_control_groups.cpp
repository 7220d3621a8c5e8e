#include "testing/fake_control_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gpurota::testing {
void FakeControlGroups::put(pid_t pid, const std::string& group, pid_t parent) {
  std::string chosen = group.empty() ? of(parent) : group;
  if (chosen.empty()) chosen = kRoot;
  groups_.insert(chosen);
  of_process_[pid] = std::move(chosen);
}

DeviceFences FakeControlGroups::fences_of(const std::string& group) const {
  const auto at = fences_.find(group);
  return at == fences_.end() ? DeviceFences() : at->second;
}

std::string FakeControlGroups::of(pid_t pid) {
  const auto at = of_process_.find(pid);
  return at == of_process_.end() ? "" : at->second;
}

bool FakeControlGroups::is_made_by_root(const std::string& group) {
  return std::none_of(users_.begin(), users_.end(),
                      [&](const std::string& users) { return ports::is_in_cgroup(group, users); });
}

Result<std::string> FakeControlGroups::make_below(pid_t pid, const std::string& name) {
  if (!available_) return fail(Code::kUnavailable, "there is no writable cgroup v2");
  if (name.rfind(ports::kCgroupPrefix, 0) != 0) {
    return fail(Code::kInternal, fmt::format("bad cgroup name {}", name));
  }
  const auto at = of_process_.find(pid);
  if (at == of_process_.end()) return fail(Code::kGone, fmt::format("process {} has ended", pid));
  std::string group = at->second + "/" + name;
  groups_.insert(group);
  return group;
}

Result<void> FakeControlGroups::move(const std::string& group, pid_t pid) {
  if (!enterable_) return fail(Code::kUnavailable, group + " takes no processes");
  const auto at = of_process_.find(pid);
  if (at == of_process_.end()) return fail(Code::kGone, fmt::format("process {} has ended", pid));
  if (!exists(group)) return fail(Code::kGone, group + " is gone");
  at->second = group;
  return {};
}

void FakeControlGroups::enter(const std::string& group, pid_t pid,
                              std::function<void(const Result<void>&)> done) {
  moves_.push_back([this, group, pid, done = std::move(done)] { done(move(group, pid)); });
  if (!moves_wait_) finish_moves();
}

void FakeControlGroups::finish_moves() {
  for (const auto& each : std::exchange(moves_, {})) each();
}

Result<void> FakeControlGroups::fence(const std::string& group, const DeviceFences& fences) {
  if (!fences_available_) return fail(Code::kDenied, "no capability");
  if (!exists(group)) return fail(Code::kGone, group + " is gone");
  if (fences.empty()) fences_.erase(group);
  if (!fences.empty()) fences_[group] = fences;
  return {};
}

std::string FakeControlGroups::find(const std::vector<std::string>& groups) {
  const auto found = std::find_if(groups.begin(), groups.end(), [this](const std::string& group) {
    return exists(group) && is_made_by_root(group);
  });
  return found == groups.end() ? "" : *found;
}

std::vector<std::string> FakeControlGroups::search(
    const std::string& group, const std::function<ports::GroupStep(std::string_view name)>& step) {
  ++searches;
  std::vector<std::string> found;
  for (const std::string& each : groups_) {
    if (each == group || !ports::is_in_cgroup(each, group)) continue;
    auto next = ports::GroupStep::kEnter;
    for (std::size_t begin = group.size() + 1, end = 0;
         next == ports::GroupStep::kEnter && end < each.size(); begin = end + 1) {
      end = std::min(each.find('/', begin), each.size());
      const std::string path = each.substr(0, end);
      if (!is_made_by_root(path)) break;
      next = step(std::string_view(each).substr(begin, end - begin));
      const bool is_new = std::find(found.begin(), found.end(), path) == found.end();
      if (next == ports::GroupStep::kFound && is_new) found.push_back(path);
    }
  }
  return found;
}

Result<std::vector<pid_t>> FakeControlGroups::members(const std::string& group) {
  if (is_short_) return fail(Code::kLimit, "out of descriptors");
  std::vector<pid_t> pids;
  for (const auto& [pid, at] : of_process_) {
    if (ports::is_in_cgroup(at, group)) pids.push_back(pid);
  }
  return pids;
}

Result<void> FakeControlGroups::kill(const std::string& group) {
  GPUROTA_ASSIGN_OR_RETURN(const auto pids, members(group));
  for (const pid_t pid : pids) kill_process_(pid);
  return {};
}

void FakeControlGroups::remove(const std::string& group,
                               std::function<void(const Result<void>&)> done) {
  moves_.push_back([this, group, done = std::move(done)] { done(remove_now(group)); });
  if (!moves_wait_) finish_moves();
}

Result<void> FakeControlGroups::remove_now(const std::string& group) {
  GPUROTA_ASSIGN_OR_RETURN(const auto pids, members(group));
  if (!pids.empty()) return fail(Code::kIo, group + " has processes in it", EBUSY);
  groups_.erase(group);
  return {};
}

}  // namespace gpurota::testing
