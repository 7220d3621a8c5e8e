// Which processes of which lease are tenants, from one daemon to the next. State thread only.
//
// A new daemon grants a lease nothing while a process may still come back that holds some of its
// memory, and has to find out by samples what the contexts of each process take. A daemon that ends
// in order writes both down. Then a lease waits no longer than until all its processes are back and
// have been looked at once, and the accounts go on as they were. The whole reconnect_grace goes by
// for a lease of which a process has died meanwhile, or whose memory was not all seen: a context
// that is being made, memory of the dead that is coming back. And for all after a daemon that was
// killed, which leaves nothing.
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
  // `file`: where it is written; empty: nowhere.
  explicit TenantRoster(std::string file) : file_(std::move(file)) {}

  // Takes up what the last daemon wrote, and removes it, so that it is believed once. A roster
  // older than five seconds is not believed: another daemon may have been there since, one that
  // knows no roster. From `settled` on all that could come back are there, also if nothing was
  // written.
  void load(ports::Processes& processes, TimePoint now, TimePoint settled);
  // For the next daemon, when nobody is granted anything any more. Writes nothing while it is not
  // known who is missing.
  Result<void> save(const lease::GrantBook& grants, TimePoint now) const;
  // Adds to what a process that comes back says that it holds what the last daemon had measured of
  // its contexts.
  void recall(LeaseId lease, const ports::ProcessId& process,
              std::vector<lease::HeldMemory>& held) const;

  // A process is a tenant of the lease; for a moment it may be two, if it has connected again.
  // True: it was the last one awaited.
  bool add(LeaseId lease, const ports::ProcessId& process, TenantId tenant, TimePoint now);
  void remove(LeaseId lease, const ports::ProcessId& process, TenantId tenant);
  // Whether all that the lease's processes hold is known to a sample begun at this time.
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
  bool loaded_ = false;  // what is awaited is known
  std::map<Member, std::vector<lease::HeldMemory>> awaited_;
  std::set<LeaseId> unsettled_;
  std::map<LeaseId, TimePoint> completed_;
  std::map<Member, std::vector<TenantId>> tenants_;  // the last connection last
};

}  // namespace gpurota::daemon
