// The program gpurota-device-plugin: connects kubelet, gpurotad and the node's state (node.h).
//
//   the state thread   the loop: all state, the state files, every decision; blocks only
//                      briefly, on the disk
//   gRPC's threads     kubelet's calls: these threads ask the state thread (questions.h), which
//                      answers from memory, and wait themselves for the lease that the start of
//                      a container needs, with values from the state thread
//   workers            one each for calls that may block: polling the daemon; kubelet's list of
//                      pods; sockets and registration; leases to name or end. Results are posted
//                      to the state thread
#pragma once

#include "client/locate.h"
#include "kube/api/event_writer.h"
#include "kube/daemon_link.h"
#include "kube/folder_watch.h"
#include "kube/node.h"
#include "kube/options.h"
#include "kube/questions.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

class Endpoint;

// Made, started and destroyed on the state thread; `loop` must outlive it.
class Agent {
 public:
  Agent(ports::EventLoop& loop, const Options& options, client::Location daemon, Node node);
  ~Agent();

  Result<void> start();
  // Stops answering kubelet; call it before the loop stops.
  void stop();

 private:
  void tick();
  void arm();
  void watch_folder();
  void poll_daemon();
  void poll_pods();
  void find_living();
  void read_groups();
  // Publishes the offered devices, and starts the work that is due. Call it after any change.
  void settle();

  ports::EventLoop& loop_;
  const Options options_;
  const client::Location daemon_;
  const std::string plugins_dir_;
  Node node_;
  Questions questions_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::optional<FolderWatch> watch_;
  ports::EventLoop::SourcePtr timer_;
  bool pods_are_unknown_ = false;
  PodEvents events_{"has another when its container starts again"};
  std::unique_ptr<EventWriter> event_writer_;  // null: no events are written
  sys::Worker pods_, sockets_, leases_;        // destroyed before the members above, like link_
  DaemonLink link_;
};

}  // namespace gpurota::kube
