// The control groups that a lease's programs are in, and the one that gets the driver's limit.
//
// A lease gets the driver's limit for one group only: in two groups its programs could have twice
// the limit. State thread only.
#pragma once

#include "core/time.h"
#include "daemon/leases/lease_tables.h"
#include "daemon/watch/pod_finder.h"
#include "ports/event_loop.h"
#include "ports/processes.h"

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gpurota::daemon {

struct LeaseGroups {
  std::vector<std::string> commands;    // by their directories; none is below another one
  std::vector<std::string> containers;  // those that are not below a command's or the pod's group
  std::string pod;                      // kubelet's, for all containers of the pod; empty: none
  std::size_t count() const { return commands.size() + containers.size() + (pod.empty() ? 0 : 1); }
  bool has_any(const std::function<bool(const std::string& group)>& test) const;
};
// `pod`: the group of the lease's pod; empty: none.
LeaseGroups groups_of(const LeaseEntry& entry, const std::string& pod);

enum class GroupKind { kCommand, kContainer, kPod };

// The choice for one lease.
struct LimitedGroup {
  std::string group;  // gets the limit; empty: none does
  GroupKind kind = GroupKind::kCommand;
  std::size_t groups = 0;  // that the lease is in
  bool shared = false;     // `group` is empty because others have programs in the lease's container
};

class GroupChooser {
 public:
  // How long an answer about the programs in a container is used.
  static constexpr Duration kFresh = std::chrono::seconds(60);
  // A container with more processes gets no limit: to read more would delay the state thread.
  static constexpr std::size_t kMostProcesses = 256;

  // All outlive it.
  GroupChooser(ports::EventLoop& loop, const LeaseTables& tables, ports::Processes& processes)
      : loop_(loop), tables_(tables), processes_(processes), pods_(loop, processes.cgroups()) {}

  // Reads the groups of all leases anew. Choices compare with these, so call this first if leases
  // have changed.
  void read_groups();
  void forget(LeaseId id) { groups_.erase(id); }
  // As last read.
  const std::map<LeaseId, LeaseGroups>& groups() const { return groups_; }
  // The group that kubelet has made for the lease's pod; empty: there is none, or none was found.
  std::string pod_group(const LeaseEntry& entry) const;
  // Chooses the pod's group, because root has named the pod. Without one, chooses the lease's only
  // container, because the command beside it is usually its engine's client; otherwise a group of a
  // command. `last`: the choice until now, which stays among equals. A container in which other
  // users or other leases have programs is never chosen: its limit would be theirs, too.
  LimitedGroup choose(const LeaseEntry& entry, const std::string& last);
  // The same, with the lease's groups as last read.
  LimitedGroup choose_as_read(const LeaseEntry& entry, const std::string& last);

 private:
  const LeaseGroups& read(const LeaseEntry& entry);
  LimitedGroup choose_among(const LeaseEntry& entry, LeaseGroups groups, const std::string& last);
  struct Checked {
    bool is_own = false;
    TimePoint at{};
  };
  bool is_own(const LeaseEntry& entry, const std::string& container);
  bool has_one_user(uid_t uid, const std::string& container);

  ports::EventLoop& loop_;
  const LeaseTables& tables_;
  ports::Processes& processes_;
  mutable PodFinder pods_;  // remembers where it has found kubelet's groups
  std::map<LeaseId, LeaseGroups> groups_;
  std::map<std::string, Checked> checked_;  // by the container's group
};

}  // namespace gpurota::daemon
