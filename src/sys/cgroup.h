// Control groups, version 2, wherever they are mounted: alone at /sys/fs/cgroup, or beside version
// 1 ("hybrid", at /sys/fs/cgroup/unified); whole, or a container's part of the tree.
//
// Used by SystemControlGroups on the state thread. Every function that changes anything refuses a
// path whose last part does not begin with ports::kCgroupPrefix: nothing that gpurota did not make
// is ever killed or removed.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

struct CgroupMount {
  std::string point;  // "/sys/fs/cgroup"
  std::string root;   // which group of the whole tree is mounted there: "/", or a container's
  bool operator==(const CgroupMount&) const = default;
};

// From /proc/self/mountinfo; nullopt where there is no version 2.
std::optional<CgroupMount> parse_cgroup_mount(std::string_view mountinfo);

// From /proc/PID/cgroup to a directory; empty if the group is outside of what is mounted (a process
// of another container, seen as "/../other").
std::string cgroup_directory(const CgroupMount& mount, std::string_view proc_cgroup);

// As ports::ControlGroups::is_made_by_root(): only root may write to the folder that the group is
// in. Any thread.
bool is_made_by_root(const std::string& group);

// Makes `parent`/`name` and moves `pid` into it. kUnavailable, with the system's reason, if the
// tree is read-only or not ours to change; kGone if the process has ended; kLimit if it is in use.
Result<std::string> make_cgroup(const std::string& parent, const std::string& name, pid_t pid);

// The processes in it and below.
Result<std::vector<pid_t>> read_cgroup_members(const std::string& directory);

// Success if it is gone, or gone when this returns.
Result<void> kill_cgroup(const std::string& directory);
Result<void> remove_cgroup(const std::string& directory);

}  // namespace gpurota::sys
