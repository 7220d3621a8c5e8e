// What a plugin's state thread has to do with gpurotad: looks at it, and leases that end. The calls
// block, so workers make them; what comes of them is back on the state thread.
#pragma once

#include "client/locate.h"
#include "kube/node_leases.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::kube {

// State thread. Its owner ends it before what `heard` touches.
class DaemonLink {
 public:
  // `loop` outlives it. `host_root`: as read_daemon().
  DaemonLink(ports::EventLoop& loop, client::Location location, std::string host_root)
      : location_(std::move(location)), host_root_(std::move(host_root)), looks_(loop, "daemon") {}

  // Looks, unless a look is under way. `whose`: as read_daemon(). That the daemon has gone, and is
  // back, is logged once.
  void look(std::vector<LeaseId> whose, std::function<void(Result<DaemonView>)> heard);
  // `whose`: "a container". That it could not be ended is logged: a later look finds the lease
  // again.
  void end_lease_on(sys::Worker& worker, const LeaseEnding& ending, const char* whose) const;

 private:
  const client::Location location_;
  const std::string host_root_;
  bool is_away_ = false;
  sys::Worker looks_;  // ends first
};

}  // namespace gpurota::kube
