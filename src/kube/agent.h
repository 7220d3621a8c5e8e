// gpurota-device-plugin at work: kubelet on one side, gpurotad on the other, and the node's state
// (node.h) between them.
//
//   the state thread   the loop: all state, the files of state, every decision. The thread waits
//                      for nobody but the disk, for a moment
//   gRPC's threads     kubelet's questions: they ask the state thread (questions.h), which answers
//                      from memory; what a container's start waits for (the daemon's lease) they
//                      wait for themselves, with values that the state thread gave them
//   workers            one each for calls that may block: polling the daemon; kubelet's list of
//                      pods; sockets and registration; leases that are named or end. Results are
//                      posted to the state thread
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

// Made, started and destroyed on the state thread; `loop` outlives it.
class Agent {
 public:
  Agent(ports::EventLoop& loop, const Options& options, client::Location daemon, Node node);
  ~Agent();

  Result<void> start();
  // Nobody is answered any more; before the loop stops.
  void stop();

 private:
  void tick();
  void arm();
  void watch_folder();
  void poll_daemon();
  void poll_pods();
  void find_living();
  void read_groups();
  // Whatever may have changed: publishes what is offered, and has done what is to be done.
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
  std::unique_ptr<EventWriter> event_writer_;  // null: nobody is told
  sys::Worker pods_, sockets_, leases_;        // end before what is above, with the link
  DaemonLink link_;
};

}  // namespace gpurota::kube
