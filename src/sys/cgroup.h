// Control groups, version 2, wherever they are mounted: alone at /sys/fs/cgroup, or beside version
// 1 ("hybrid", at /sys/fs/cgroup/unified); the whole tree, or only a container's part.
//
// Used by SystemControlGroups on the state thread, unless a comment says otherwise. Every function
// that changes a group refuses a path whose last part does not begin with ports::kCgroupPrefix, so
// that gpurota only ever kills or removes groups that it made.
#pragma once

#include "base/result.h"
#include "ports/control_groups.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

struct CgroupMount {
  std::string point;  // "/sys/fs/cgroup"
  std::string root;   // the group mounted there: "/", or a container's
  bool operator==(const CgroupMount&) const = default;
};

// From /proc/self/mountinfo; nullopt if version 2 is not mounted.
std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo);

// The directory of the group in /proc/PID/cgroup; empty if the group is outside the mounted part (a
// process of another container, shown as "/../other").
std::string cgroup_directory(const CgroupMount& mount, std::string_view proc_cgroup);

// Like ports::ControlGroups::is_made_by_root(): true if only root may write to the folder of the
// group. Any thread.
bool is_made_by_root(const std::string& group);

// Whether only root and this process's user can make groups in this one. Any thread.
bool is_closed(const std::string& group);

// As ports::ControlGroups::search(). Reads this many groups at most, and this many names.
constexpr std::size_t kMostGroupsSearched = 256;
constexpr std::size_t kMostNamesSearched = 8192;
std::vector<std::string> search_cgroups(
    const std::string& group, const std::function<ports::GroupStep(std::string_view name)>& step);

// Makes `parent`/`name`. kUnavailable, with the system's reason, if the tree is read-only or not
// ours to change; kLimit if the group exists and has processes.
Result<std::string> make_cgroup(const std::string& parent, const std::string& name);

// Moves `pid` into the group. `process`: a pidfd of it. Any thread; may take tens of milliseconds.
// kGone if the process has ended, even if the move seems to have succeeded: a later process with
// the same pid may then be in the group. kUnavailable: the group cannot take the process.
Result<void> enter_cgroup(const std::string& directory, pid_t pid, int process);

// The processes in `directory` and in all groups below it.
Result<std::vector<pid_t>> read_cgroup_members(const std::string& directory);

// Kills all processes in the group; also succeeds if there is no such group.
Result<void> kill_cgroup(const std::string& directory);
Result<void> remove_cgroup(const std::string& directory);

}  // namespace gpurota::sys
