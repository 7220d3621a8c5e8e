// Which claims are to be asked for at the API server, and which are to be given up though kubelet
// has not said that they are over: those that are gone there (deleted by force, or allocated to
// nobody any more), and whose pod is gone from this machine, too; kubelet has lost its state, then,
// and never will say it. State thread; touches nothing.
#pragma once

#include "core/time.h"
#include "kube/dra/claim.h"

#include <map>
#include <string>
#include <vector>

namespace gpurota::kube {

struct UsedClaim {
  ClaimId id;
  std::string pool;  // whose devices it has here
  std::string
      pod_uid;  // empty: several have it, or it is not known: the API server's answer is all there is
  bool is_used = false;  // a process on a GPU has one of its leases
};

class ClaimReview {
 public:
  // Answers in a row that it is gone, until it is given up.
  static constexpr int kAnswers = 2;
  // Of one call of due(): the API server is everybody's.
  static constexpr std::size_t kMost = 8;
  // A claim that is used is asked for so many times more rarely.
  static constexpr int kUsedPauses = 10;

  // `pause`: between two questions for a claim.
  explicit ClaimReview(Duration pause) : pause_(pause) {}

  // The claims to ask for now. The first call returns all: they were stored by an earlier run, and
  // a start puts no question off.
  std::vector<UsedClaim> due(const std::vector<UsedClaim>& claims, TimePoint now);
  // Kubelet was started, and may have lost its state: all are due at the next calls.
  void on_kubelet();
  // The answer. True: it is to be given up.
  bool has_gone(const std::string& uid, bool is_there);

 private:
  struct Seen {
    TimePoint asked{};     // or seen first
    bool is_due = false;   // whenever that was
    bool is_used = false;  // at the last call
    int gone = 0;          // answers in a row, while it was not used
  };
  const Duration pause_;
  bool has_looked_ = false;
  std::map<std::string, Seen> seen_;  // by uid
};

}  // namespace gpurota::kube
