// The program gpurota-dra: connects kubelet, the API server, gpurotad and the node's state
// (dra_node.h).
//
//   the state thread   the loop: all state, the state file, every decision; blocks only
//                      briefly, on the disk
//   gRPC's threads     kubelet's calls (claim_calls.h): these threads ask the state thread
//                      (questions.h), and wait themselves for the API server, the daemon's
//                      lease and the disk
//   workers            one each for calls that may block: polling the daemon; sockets; leases to
//                      make again or end; claims that kubelet may have forgotten; writing
//                      ResourceSlices; watching ResourceSlices
#pragma once

#include "client/locate.h"
#include "kube/api/event_writer.h"
#include "kube/daemon_link.h"
#include "kube/dra/claim_calls.h"
#include "kube/dra/claim_review.h"
#include "kube/dra/dra_options.h"
#include "kube/dra/publisher.h"
#include "kube/folder_watch.h"
#include "ports/event_loop.h"
#include "sys/worker.h"

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace gpurota::kube {

// Made, started and destroyed on the state thread; `loop` must outlive it.
class Driver {
 public:
  Driver(ports::EventLoop& loop, const DraOptions& options, client::Location daemon, DraNode node);
  ~Driver();

  void start() { tick(); }
  // Stops answering kubelet; call it before the loop stops.
  void stop();

 private:
  void tick();
  void arm();
  void watch_folder();
  void poll_daemon();
  void check_sockets();
  void on_registration(const std::string& refusal);
  // Publishes the devices, and starts the work that is due. Call it after any change.
  void settle();
  void order(const DraNode::LostLease& lost);
  struct Ordered {
    bool is_gone = false;            // the claim, at the API server
    std::optional<LeaseId> lease{};  // empty: kubelet is asking for the claim itself
  };
  void on_ordered(const DraNode::LostLease& lost, const Result<Ordered>& ordered);
  // Looks up claims that kubelet may have forgotten.
  void review_claims();
  void give_up(const ClaimId& claim, const char* why);

  ports::EventLoop& loop_;
  const DraOptions options_;
  const client::Location daemon_;
  const std::string registry_;
  const DraServer::Sockets at_;
  DraNode node_;
  Published<PoolHealth> health_;
  Questions questions_;
  const std::shared_ptr<NamedLocks> locks_ = std::make_shared<NamedLocks>();
  std::shared_ptr<ApiClient> api_;
  std::unique_ptr<ClaimCalls> claim_calls_;
  std::shared_ptr<DraServer> server_;
  std::optional<FolderWatch> watch_;
  ports::EventLoop::SourcePtr timer_;
  std::set<std::string> unleased_;  // allocations whose lost lease was logged
  bool serving_ = false, is_refused_ = false;
  ClaimReview review_{options_.review};
  sys::Worker sockets_, leases_, reviews_, slices_,
      slice_watch_;  // destroyed before the members above, like link_
  DaemonLink link_;
  std::unique_ptr<Publisher> publisher_;
  PodEvents events_{"cannot have another now"};
  std::unique_ptr<EventWriter> event_writer_;
};

}  // namespace gpurota::kube
