// How long free GPUs are kept for requests that cannot use them yet. Pure.
//
// A large request could never start if every request for one GPU took each GPU that becomes free,
// so the GPUs that it will need are kept for it. But kept GPUs would stand idle without limit if
// the request also waited for a GPU whose lease has no end. So two times are measured: the time in
// which each request could have run if nobody else had waited, and the time for which each GPU was
// kept from such a request. Once a request's time reaches `most`, the request ignores the plans of
// others. Once a GPU's time reaches `most`, every request may ignore the plans on that GPU. The
// clocks belong to the blocked requests and to the GPUs, not to the request for which GPUs are
// kept: if that request is cancelled and made again, the clocks do not start again.
//
// One request is protected: the first in the queue, once it has waited for `longest_wait`, if
// enforced ends let it start within a day. Its plan binds everybody, for a day at most.
#pragma once

#include "base/ids.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace gpurota::lease {

struct KeepingRules {
  std::chrono::milliseconds most{std::chrono::hours(1)};           // zero: no limit
  std::chrono::milliseconds longest_wait{std::chrono::hours(24)};  // zero: nobody is protected
};

// A protected request starts within this time, and is protected for no longer.
constexpr std::chrono::hours kProtectedFor{24};

// The facts about keeping in one decision.
struct KeepingFacts {
  std::vector<RequestId> blocked;            // requests that would start if nobody else waited
  std::vector<GpuUuid> kept;                 // planned GPUs on which blocked requests would start
  std::map<GpuUuid, RequestId> planned_for;  // GPUs with a plan: the first request there
  std::optional<RequestId> protected_request;
  bool operator==(const KeepingFacts&) const = default;
};

class Keeping {
 public:
  using Milliseconds = std::chrono::milliseconds;

  explicit Keeping(KeepingRules rules = {}) : rules_(rules) {}
  void set_rules(KeepingRules rules) { rules_ = rules; }

  // Whether the request has been blocked long enough to ignore plans.
  bool is_open(RequestId request) const;
  // Whether plans on the GPU no longer bind anybody.
  bool is_lapsed(const GpuUuid& gpu) const;
  // Whether the first request in the queue may be protected after this wait.
  bool may_protect(RequestId request, Milliseconds waited) const;

  // Advances the clocks by the time since the decision with these facts.
  void pass(const KeepingFacts& facts, Milliseconds passed);
  // Call when the request starts on these GPUs; `facts`: those of the last decision before the one
  // that starts it.
  void on_start(RequestId request, const std::vector<GpuUuid>& gpus, const KeepingFacts& facts);
  void forget(RequestId request);
  // Removes the clocks of all requests but these.
  void keep_only(const std::set<RequestId>& requests);
  // The time until a clock next changes the decision, if everything stays as in `facts`.
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
