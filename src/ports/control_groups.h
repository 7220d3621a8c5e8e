// The machine's control groups (version 2), by their directories.
//
// Called on the state thread; every call returns within microseconds to a few milliseconds.
#pragma once

#include "base/result.h"
#include "core/device_fence.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::ports {

constexpr const char* kCgroupPrefix = "gpurota-";

// The step of a search at a group, by the group's name.
enum class GroupStep {
  kFound,  // an answer of the search, which does not look below it
  kEnter,
  kSkip,
};

class ControlGroups {
 public:
  virtual ~ControlGroups() = default;

  // The highest group that is visible, absolute; empty: there is no cgroup v2.
  virtual std::string root() = 0;
  // The group of a process, absolute, or empty.
  virtual std::string of(pid_t pid) = 0;
  // Whether only root can have made this group. Below the group that systemd leaves to each user,
  // any user can make a group that is named like a container engine's. So code that decides by a
  // group's name must also call this function. False where that cannot be told.
  virtual bool is_made_by_root(const std::string& group) = 0;
  // Makes the group `name` below the one that `pid` is in, so that a process that moves there stays
  // under all its limits. kUnavailable where there is no writable cgroup v2; kLimit: the group
  // exists and has processes. `name` begins with kCgroupPrefix: no other group is ever killed or
  // removed, whatever path is given.
  virtual Result<std::string> make_below(pid_t pid, const std::string& name) = 0;
  // Moves `pid` into a group that make_below() has made, on a thread of its own, as the kernel may
  // take tens of milliseconds. Then calls `done` on the state thread, perhaps before this returns;
  // never after this object is destroyed. kGone: the process has ended, or the group is gone;
  // kUnavailable: the group cannot take it. After an error do not kill the group: a later process
  // with the same pid may be in the group.
  virtual void enter(const std::string& group, pid_t pid,
                     std::function<void(const Result<void>&)> done) = 0;
  // From now on the group's processes can open a device in the range of a fence only if the fence's
  // `open` lists the device. Other devices are not restricted. If there are no fences, gpurota
  // restricts nothing.
  // Files that are open stay open. The fence lasts as long as the group, even without the daemon.
  // Errors are those of sys::set_device_program(); kGone: the group is gone.
  virtual Result<void> fence(const std::string& group, const DeviceFences& fences) = 0;
  // The first of these groups that exists and that only root, or the daemon's user, can have made;
  // empty: there is none. `groups`: absolute.
  virtual std::string find(const std::vector<std::string>& groups) = 0;
  // The groups below `group` that `step` finds, the highest first. Looks only into groups to which
  // nobody but root and the daemon's user can write. The work is limited: in a tree with very many
  // groups those far below are not found.
  virtual std::vector<std::string> search(
      const std::string& group, const std::function<GroupStep(std::string_view name)>& step) = 0;
  // The processes in the group and in those below it; none if the group is gone.
  virtual Result<std::vector<pid_t>> members(const std::string& group) = 0;
  // Kills everything in the group with cgroup.kill (or one by one before Linux 5.14).
  virtual Result<void> kill(const std::string& group) = 0;
  // Removes the group if it is empty. While a process is being moved, the kernel makes each removal
  // of a group wait, so the thread of enter() removes it then. Afterwards calls `done` on the state
  // thread, perhaps before this returns; never after this object is destroyed, but then the group
  // is removed all the same. Not an error if the group is gone already. Do not make a group of this
  // name again.
  virtual void remove(const std::string& group, std::function<void(const Result<void>&)> done) = 0;
};

// Whether `path` is the group `group`, or below it. False for a group without a name.
inline bool is_in_cgroup(const std::string& path, const std::string& group) {
  return !group.empty() && path.starts_with(group) &&
         (path.size() == group.size() || path[group.size()] == '/');
}

}  // namespace gpurota::ports
