// Decides which claims to look up at the API server, and which to give up although kubelet has not
// reported their end. A claim is given up when it is gone at the API server (deleted by force, or
// no longer allocated) and its pod is gone from this machine too: kubelet has then lost its state
// and will never report the end. State thread; touches nothing.
#pragma once

#include "core/time.h"
#include "kube/dra/claim.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

struct UsedClaim {
  ClaimId id;
  std::string pool;      // pool of its devices here
  std::string pod_uid;   // empty: shared or unknown; only the API server's answer counts
  bool is_used = false;  // a process on a GPU uses one of its leases
};

class ClaimReview {
 public:
  // A claim is given up after this many "gone" answers in a row.
  static constexpr int kAnswers = 2;
  // The most claims of one call of due(), because the API server serves the whole cluster.
  static constexpr std::size_t kMost = 8;
  // A used claim is looked up less often, by this factor.
  static constexpr int kUsedPauses = 10;

  // `pause`: the time between two lookups of a claim.
  explicit ClaimReview(Duration pause) : pause_(pause) {}

  // The claims to look up now, at most kMost. The claims of the first call are due at once: an
  // earlier run stored them, and restarts must not postpone their lookup.
  std::vector<UsedClaim> due(const std::vector<UsedClaim>& claims, TimePoint now);
  // Kubelet has started, and may have lost its state: all claims become due.
  void on_kubelet();
  // Takes the answer for a claim. True: give the claim up.
  bool has_gone(const std::string& uid, bool is_there);

 private:
  struct Seen {
    TimePoint asked{};     // last lookup, or first call
    bool is_due = false;   // at once, whatever `asked` is
    bool is_used = false;  // at the last call
    int gone = 0;          // answers "gone" in a row while unused
  };
  const Duration pause_;
  bool has_looked_ = false;
  std::map<std::string, Seen> seen_;  // by uid
};

}  // namespace gpurota::kube
