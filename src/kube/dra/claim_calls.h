// Answers kubelet's calls about claims: reads a claim, makes and ends its leases, and writes its
// specs. On gRPC's threads, unless a comment says otherwise. The state thread owns the stored state
// and is asked for it.
#pragma once

#include "client/locate.h"
#include "kube/api/api_client.h"
#include "kube/dra/dra_node.h"
#include "kube/dra/dra_server.h"
#include "kube/dra/named_locks.h"
#include "kube/questions.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::kube {

class ClaimCalls final : public ClaimHandler {
 public:
  // All must outlive the object.
  struct Parts {
    DraNode& node;
    Questions& questions;
    NamedLocks& locks;
    const client::Location& daemon;
    std::shared_ptr<ApiClient> api;
    std::string cdi_dir;
    std::function<void()> changed;  // state thread: called after an answer changed the node
    std::function<void(const std::string& refusal)> registered;  // state thread
    // State thread: called when a claim cannot be prepared, for a reason that is new for it or was
    // not reported for a while.
    std::function<void(const ClaimId& claim, const std::string& why)> refused;
  };
  explicit ClaimCalls(Parts parts) : parts_(std::move(parts)) {}

  Result<Prepared> prepare(const ClaimId& claim, Deadline deadline) override;
  Result<void> unprepare(const ClaimId& claim, Deadline deadline) override;
  void on_registration(const std::string& refusal) override;

 private:
  struct Works {
    std::vector<DraNode::Work> all;
    bool is_new = false;  // the claim was unknown before this call
  };
  Result<Works> work_for(const ClaimId& claim, Deadline deadline);
  Result<void> have_lease(const ClaimId& claim, const DraNode::Work& work, Deadline deadline);
  void give_up(const std::string& uid, const std::vector<DraNode::Work>& works);
  Result<void> forget(const std::string& uid);
  // Logs each reason once, however often kubelet asks.
  void warn(const ClaimId& claim, const char* what, const std::string& why);
  bool was_refused(const std::string& uid);
  void forget_warning(const std::string& uid);

  Parts parts_;
  std::mutex mutex_;
  struct Warned {
    std::string why;
    std::optional<std::chrono::steady_clock::time_point> said;  // last reported to the claim
  };
  std::map<std::string, Warned> warned_;  // by uid; guarded by mutex_
};

}  // namespace gpurota::kube
