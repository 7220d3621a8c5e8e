// Which processes of which lease are tenants, from one daemon to the next. State thread only.
//
// A new daemon grants a lease nothing while a process may still come back that holds some of its memory. A daemon that ends in
// order writes down who is there; then the next one need not wait longer than until all of these are back. One
// that was killed leaves nothing, and the whole reconnect_grace goes by.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "core/time.h"
#include "ports/processes.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <sys/types.h>

namespace gpurota::daemon {

class TenantRoster {
 public:
  // `file`: where it is written; empty: nowhere.
  explicit TenantRoster(std::string file) : file_(std::move(file)) {}

  // Takes up what the last daemon wrote, and removes it, so that it is believed once. Who has died since is not awaited.
  // What is older than ten seconds is not believed: another daemon may have been there since, one that knows no roster. From
  // `settled` on all that could come back are there, also if nothing was written.
  void load(ports::Processes& processes, TimePoint now, TimePoint settled);
  // For the next daemon, when nobody is granted anything any more. Writes nothing while it is not known who is missing.
  Result<void> save(TimePoint now) const;

  // A process is a tenant of the lease: twice for a moment, if it has connected again. True: it was the last one awaited.
  bool add(LeaseId lease, const ports::ProcessId& process);
  void remove(LeaseId lease, const ports::ProcessId& process);
  // Nobody of the lease is awaited.
  bool is_complete(LeaseId lease) const;

 private:
  struct Member {
    LeaseId lease;
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
    auto operator<=>(const Member&) const = default;
  };
  bool read(ports::Processes& processes, TimePoint now);

  std::string file_;
  TimePoint settled_{};
  bool loaded_ = false;  // what is awaited is known
  std::set<Member> awaited_;
  std::map<Member, int> tenants_;  // with how many connections
};

}  // namespace gpurota::daemon
