// The calls of a plugin's state thread to gpurotad: polling its state, and ending leases. The calls
// block, so workers make them; results come back to the state thread.
#pragma once

#include "client/locate.h"
#include "kube/node_leases.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::kube {

// State thread. The owner destroys it before anything that `heard` uses.
class DaemonLink {
 public:
  // `loop` must outlive it. `host_root`: as for read_daemon().
  DaemonLink(ports::EventLoop& loop, client::Location location, std::string host_root)
      : location_(std::move(location)), host_root_(std::move(host_root)), poller_(loop, "daemon") {}

  // Polls the daemon, unless a poll is under way. `whose`: as for read_daemon(). Losing the daemon
  // and finding it again are each logged once.
  void poll(std::vector<LeaseId> whose, std::function<void(Result<DaemonView>)> heard);
  // `whose`: "a container". A failure is logged, and a later poll finds the lease again.
  void end_lease_on(sys::Worker& worker, const LeaseEnding& ending, const char* whose) const;

 private:
  const client::Location location_;
  const std::string host_root_;
  bool is_away_ = false;
  sys::Worker poller_;  // destroyed first
};

}  // namespace gpurota::kube
