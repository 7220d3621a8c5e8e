// Whose is a process that NVML lists? Decided by what the kernel says: the cgroup it is in, or
// whose descendant it is. State thread only.
#pragma once

#include "base/ids.h"
#include "ports/processes.h"
#include "watch/container.h"

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpurota::daemon {

// The leases' knowledge of their processes.
class LeaseRoots {
 public:
  virtual ~LeaseRoots() = default;
  virtual std::optional<LeaseId> lease_of_cgroup(const std::string& cgroup) const = 0;
  // A command's first process, or one that was seen below it.
  virtual std::optional<LeaseId> lease_of_process(const ports::ProcessId& process) const = 0;
  // The lease that has a process of this user in this container: all of theirs there are in it.
  virtual std::optional<LeaseId> lease_of_container(const std::string& group, uid_t uid) const = 0;
  // Differs whenever a process, or a control group, has come to a lease otherwise than by a look at
  // its descendants.
  virtual std::uint64_t membership_changes() const = 0;
};

class Attribution {
 public:
  struct Owner {
    std::optional<uid_t> uid;  // empty: gone before anybody looked, or hidden
    std::optional<LeaseId> lease;
    std::uint64_t start_ticks = 0;  // 0: not known
    bool gone = false;              // now
    std::optional<watch::Container> container{};
    std::string executable{};  // of a process without a lease; foreign bytes
  };

  Attribution(ports::Processes& processes, const LeaseRoots& roots)
      : processes_(processes), roots_(roots) {}

  // Remembered while the process is listed: a dead process's memory stays its lease's until the
  // driver has taken it back.
  // Until the next call.
  const Owner& owner_of(pid_t pid);
  // Goes up from a process of which nothing is known, at most `reads_left` ancestors, which it
  // counts down. False: there are more, go on later. Then owner_of() reads little. For who asks
  // about many processes, or deep ones, in pieces.
  bool walk_ahead(pid_t pid, std::size_t& reads_left);
  // The processes that NVML lists now, over all GPUs; the others are forgotten, and who had no
  // lease is looked at anew.
  void keep_only(const std::set<pid_t>& listed);

 private:
  Owner find_owner(const ports::ProcessInfo& process);
  std::optional<LeaseId> walk(const ports::ProcessInfo& process);
  // A process and its ancestors, as far as they have been read.
  struct Path {
    std::vector<ports::ProcessId> ids;
    pid_t next = 0;  // 0: the path is whole
  };
  // One more; the reading of it is not counted.
  void lengthen(Path& path, const ports::ProcessInfo& info);
  // The lease that the path and all on it belong to. `path` is whole, or ends at a process whose
  // lease is known.
  std::optional<LeaseId> settle(const Path& path);
  struct Walked;
  const Walked* find_walked(const ports::ProcessId& process) const;

  ports::Processes& processes_;
  const LeaseRoots& roots_;
  std::unordered_map<pid_t, Owner> known_;
  Owner unseen_;
  // Processes of earlier walks, and the result of each. A walk ends at such a process, so that a
  // deep tree is walked once a second, however many questions are asked about its processes.
  struct Walked {
    std::uint64_t start_ticks = 0;
    std::optional<LeaseId> lease;  // empty: a stranger, as all its ancestors
  };
  std::unordered_map<pid_t, Walked> walked_;
  std::unordered_map<pid_t, Path> ahead_;  // of walk_ahead(), by the first one's number
  std::uint64_t seen_changes_ = 0;
};

}  // namespace gpurota::daemon
