// The control group of this process, version 2: the machine's, or one of a simulated tree, for
// tests where no control group can be made.
//
// The simulated tree is the folder DIR/cgroup of the machine, if it is there. Each folder below it
// is a group, and its file cgroup.procs lists processes that were moved there; their children are
// in the same group. tests/e2e/cgroup_tree.c shows gpurotad the same tree. Any thread.
#pragma once

#include <string>

namespace gpurota::sim {

// Its directory; empty: not known. `dir` is the machine's directory.
std::string own_group(const std::string& dir);
bool is_group(const std::string& directory);
// Whether `path` is the group `group`, or below it.
bool is_in_group(const std::string& path, const std::string& group);

}  // namespace gpurota::sim
