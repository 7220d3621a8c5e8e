// What is taken of one GPU, from when until when: by leases that are, and by those that the queue has
// planned. Pure.
#pragma once

#include "base/bytes.h"
#include "core/time.h"

#include <optional>
#include <vector>

namespace gpurota::lease {

// The end of what has no known end.
constexpr WallTime kNever = WallTime::max();

class GpuTimeline {
 public:
  // kDue: of a request whose turn it is, once the fillers there have gone; no filler may take it again.
  enum class Source { kLease, kFiller, kPlan, kDue };
  struct Use {
    WallTime from;
    WallTime until;
    std::optional<Bytes> bytes;  // empty: the whole GPU
    Source source = Source::kLease;
  };
  // Whom a request has to leave alone: a filler asks for what nobody has, plans or not; anybody else
  // need not mind fillers, who go when asked.
  enum class Against { kAll, kAllButFillers, kAllButPlans };

  void add(const Use& use) { uses_.push_back(use); }
  const std::vector<Use>& uses() const { return uses_; }

  // Whether `bytes` of `capacity` (empty: the whole GPU) can be had all the time of [from, until).
  bool fits(std::optional<Bytes> bytes, WallTime from, WallTime until, Against against,
            Bytes capacity) const;
  // The most that slices have of it at once within [from, until); nothing if somebody has it whole.
  std::optional<Bytes> taken(WallTime from, WallTime until, Against against) const;
  // From when on `bytes` can be had for ever; kNever if nobody knows.
  WallTime free_from(std::optional<Bytes> bytes, WallTime now, Against against,
                     Bytes capacity) const;

 private:
  std::vector<Use> uses_;
};

}  // namespace gpurota::lease
