// Finds the user and the lease of a process that NVML lists, by what the kernel says: the process's
// cgroup and its ancestors. State thread only.
#pragma once

#include "daemon/leases/lease_tables.h"
#include "ports/processes.h"
#include "watch/container.h"

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpurota::daemon {

class Attribution {
 public:
  struct Owner {
    std::optional<uid_t> uid;  // empty: ended before it could be read, or hidden
    std::optional<LeaseId> lease;
    std::uint64_t start_ticks = 0;  // 0: not known
    bool gone = false;              // now
    std::optional<watch::Container> container{};
    std::string executable{};  // set for a process without a lease; untrusted bytes
  };

  Attribution(ports::Processes& processes, const LeaseTables& tables)
      : processes_(processes), tables_(tables) {}

  // The answer is remembered while the process is listed: the memory of a dead process belongs to
  // its lease until the driver has taken it back. The reference is valid until the next call.
  const Owner& owner_of(pid_t pid);
  // Reads at most `reads_left` ancestors of a process about which nothing is known, and counts
  // `reads_left` down. False: there are more ancestors, call again later. Once the result is true,
  // owner_of() reads little. For callers that ask in pieces about many processes, or about
  // processes deep in a tree.
  bool walk_ahead(pid_t pid, std::size_t& reads_left);
  // `listed`: the processes that NVML lists now, on all GPUs. All others are forgotten, and a
  // process that had no lease is examined again.
  void keep_only(const std::set<pid_t>& listed);

 private:
  Owner find_owner(const ports::ProcessInfo& process);
  std::optional<LeaseId> walk(const ports::ProcessInfo& process);
  // A process and its ancestors, as far as they have been read.
  struct Path {
    std::vector<ports::ProcessId> ids;
    pid_t next = 0;  // 0: the path is complete
  };
  // Adds one more process, which the caller has already read.
  void lengthen(Path& path, const ports::ProcessInfo& info);
  // The lease that all processes of the path belong to. `path` is complete, or ends at a process
  // whose lease is known.
  std::optional<LeaseId> settle(const Path& path);
  struct Walked;
  const Walked* find_walked(const ports::ProcessId& process) const;

  ports::Processes& processes_;
  const LeaseTables& tables_;
  std::unordered_map<pid_t, Owner> known_;
  Owner unseen_;
  // Processes of earlier walks, and the result of each. A walk ends at such a process, so that a
  // deep tree is walked once a second, however many questions are asked about its processes.
  struct Walked {
    std::uint64_t start_ticks = 0;
    std::optional<LeaseId> lease;  // empty: neither it nor any ancestor is in a lease
  };
  std::unordered_map<pid_t, Walked> walked_;
  std::unordered_map<pid_t, Path> ahead_;  // of walk_ahead(), by the pid of the first process
  std::uint64_t seen_changes_ = 0;
};

}  // namespace gpurota::daemon
