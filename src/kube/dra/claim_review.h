// Which claims are to be given up though kubelet has not said that they are over: those that are gone at the API server (deleted by force), and
// whose pod is gone from this machine, too; kubelet has lost its state, then, and never will say it. State thread; touches nothing, and says
// of which claims it is to be asked.
#pragma once

#include "core/time.h"
#include "kube/dra/claim.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

struct UsedClaim {
  ClaimId id;
  // Empty: several have it, or it is not known; then it stays until somebody says that it is over.
  std::string pod_uid;
  bool is_used = false;  // a process on a GPU has one of its leases
};

class ClaimReview {
 public:
  // Answers in a row that it is gone, until it is given up.
  static constexpr int kAnswers = 2;
  // Of one look: the API server is everybody's.
  static constexpr std::size_t kMost = 8;

  // `pause`: so long a claim is not used before it is asked for; then again each time as long.
  explicit ClaimReview(Duration pause) : pause_(pause) {}

  // Those that are to be asked for now.
  std::vector<UsedClaim> look(const std::vector<UsedClaim>& claims, TimePoint now);
  // The answer. True: it is to be given up.
  bool has_gone(const std::string& uid, bool is_there);

 private:
  struct Seen {
    TimePoint since{};  // not used and not asked for
    int gone = 0;       // answers in a row
  };
  const Duration pause_;
  std::map<std::string, Seen> seen_;  // by uid
};

}  // namespace gpurota::kube
