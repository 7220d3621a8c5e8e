// Passes on, from one daemon to the next, which processes are tenants of which lease. State thread
// only.
//
// A new daemon grants a lease nothing while a process that holds memory of the lease may still
// connect again, and has to measure the contexts of each process by samples. A daemon that ends in
// order stores the processes and the sizes of their contexts. With this roster, a lease waits only
// until all its processes have connected and been sampled once, and its accounts continue as they
// were. A lease waits for the whole reconnect_grace if one of its processes has died meanwhile, or
// if some of its memory was not known yet (because a context was being made, or because the memory
// of a dead process had not been freed yet). All leases wait that long after a daemon that was
// killed, which stores nothing.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "core/time.h"
#include "lease/grant_book.h"
#include "ports/processes.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class TenantRoster {
 public:
  // `file`: where the roster is stored; empty: nowhere.
  explicit TenantRoster(std::string file) : file_(std::move(file)) {}

  // Reads the file of the last daemon and removes it, so that it is used only once. A roster older
  // than five seconds is ignored: a daemon that does not write rosters may have run since. From
  // `settled` on, save() writes a roster even if no file was loaded, and no longer writes the
  // leases in `unsettled_`.
  void load(ports::Processes& processes, TimePoint now, TimePoint settled);
  // Stores the roster for the next daemon. Call when nothing is granted any more. Writes nothing
  // while the processes that are still awaited are unknown.
  Result<void> save(const lease::GrantBook& grants, TimePoint now) const;
  // Adds the sizes of contexts that the last daemon measured to the memory that a process reports
  // when it connects again.
  void recall(LeaseId lease, const ports::ProcessId& process,
              std::vector<lease::HeldMemory>& held) const;

  // Notes that the process is a tenant of the lease. A process that connects again is two tenants
  // for a moment. True: the process was the last one of the lease that was awaited.
  bool add(LeaseId lease, const ports::ProcessId& process, TenantId tenant, TimePoint now);
  void remove(LeaseId lease, const ports::ProcessId& process, TenantId tenant);
  // Whether a sample begun at `when` knows all that the lease's processes hold.
  bool was_complete(LeaseId lease, TimePoint when) const;

 private:
  struct Member {
    LeaseId lease;
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
    auto operator<=>(const Member&) const = default;
  };
  bool read(ports::Processes& processes, TimePoint now);
  bool awaits(LeaseId lease) const;

  std::string file_;
  TimePoint loaded_at_{}, settled_{};
  bool loaded_ = false;  // `awaited_` is known
  std::map<Member, std::vector<lease::HeldMemory>> awaited_;
  std::set<LeaseId> unsettled_;
  std::map<LeaseId, TimePoint> completed_;
  std::map<Member, std::vector<TenantId>> tenants_;  // the latest connection is last
};

}  // namespace gpurota::daemon
