// For how long free GPUs are kept for requests that cannot use them yet. Pure.
//
// A large request could never start if whoever needs one GPU took each that comes free, so what it
// will need is kept for it. And a request that waits for a lease without an end would have a
// machine stand idle. So the time is counted in which each request could have run if nobody else
// had waited, and the time for which each GPU was kept from such a request. A request that could
// have run for `most`, and anybody on a GPU that has been kept for `most`, ignores the plans of
// others. The clocks belong to those who are blocked and to the GPUs: a request that leaves and
// comes again begins no new hour.
//
// One request is protected: the first in the queue, once it has waited for `longest_wait`, if
// enforced ends tell that it starts within a day. Its plan binds everybody, for a day at most.
#pragma once

#include "base/ids.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpurota::lease {

struct KeepingRules {
  std::chrono::milliseconds most{std::chrono::hours(1)};           // zero: for ever
  std::chrono::milliseconds longest_wait{std::chrono::hours(24)};  // zero: nobody is protected
};

// A protected request starts within this time, and is protected for no longer.
constexpr std::chrono::hours kProtectedFor{24};

// The facts of one decision that concern keeping.
struct KeepingFacts {
  std::vector<RequestId> blocked;            // requests that would start if nobody else waited
  std::vector<GpuUuid> kept;                 // GPUs with a plan on them on which those would start
  std::map<GpuUuid, RequestId> planned_for;  // GPUs with a plan on them: the first request there
  std::optional<RequestId> protected_request;
  bool operator==(const KeepingFacts&) const = default;
};

class Keeping {
 public:
  using Milliseconds = std::chrono::milliseconds;

  explicit Keeping(KeepingRules rules = {}) : rules_(rules) {}
  void set_rules(KeepingRules rules) { rules_ = rules; }

  // Whether the request has been blocked for so long that it ignores plans.
  bool is_open(RequestId request) const;
  // Whether plans on the GPU bind nobody any more.
  bool is_lapsed(const GpuUuid& gpu) const;
  // Whether the first request in the queue, which has waited for so long, may be protected.
  bool may_protect(RequestId request, Milliseconds waited) const;

  // So much time has passed since the decision that said this.
  void pass(const KeepingFacts& facts, Milliseconds passed);
  // The request starts on these GPUs; `facts` are of the decision before.
  void on_start(RequestId request, const std::vector<GpuUuid>& gpus, const KeepingFacts& facts);
  void forget(RequestId request);
  // Forgets the clocks of all requests but these.
  void keep_only(const std::set<RequestId>& requests);
  // In how much time the next clock changes what is decided, if all stays as `facts` say.
  std::optional<Milliseconds> next_change(const KeepingFacts& facts) const;

  // For the store.
  Milliseconds blocked(RequestId request) const;
  Milliseconds protected_for(RequestId request) const;
  Milliseconds kept(const GpuUuid& gpu) const;
  void restore(RequestId request, Milliseconds blocked, Milliseconds protected_for);
  void restore(const GpuUuid& gpu, Milliseconds kept);
  const std::map<GpuUuid, Milliseconds>& kept() const { return kept_; }

 private:
  KeepingRules rules_;
  std::map<RequestId, Milliseconds> blocked_;
  std::map<RequestId, Milliseconds> protected_for_;
  std::map<GpuUuid, Milliseconds> kept_;
};

}  // namespace gpurota::lease
