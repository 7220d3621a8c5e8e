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
  // kBooking: promised for later; fillers go when its time comes.
  enum class Source { kLease, kFiller, kPlan, kDue, kBooking };
  // Slices add up. Swap leases take turns: of them the largest counts.
  struct Share {
    std::optional<Bytes> bytes;  // empty: the whole GPU
    bool swap = false;
  };
  struct Use {
    WallTime from;
    WallTime until;
    Share share;
    Source source = Source::kLease;
  };
  // Whom a request has to leave alone: a filler asks for what nobody has, plans and bookings or not; anybody else
  // need not mind fillers, who go when asked. kPromised: all but plans.
  enum class Against { kAll, kAllButFillers, kAllButPlans, kPromised };

  void add(const Use& use) { uses_.push_back(use); }
  const std::vector<Use>& uses() const { return uses_; }

  // Whether this share of `capacity` can be had all the time of [from, until).
  bool fits(const Share& share, WallTime from, WallTime until, Against against,
            Bytes capacity) const;
  // The most that is taken of it at once within [from, until); nothing if somebody has it whole.
  std::optional<Bytes> taken(WallTime from, WallTime until, Against against) const;
  // The same of slices only.
  Bytes slices(WallTime from, WallTime until, Against against) const;
  // From when on this share can be had for ever; kNever if nobody knows.
  WallTime free_from(const Share& share, WallTime now, Against against, Bytes capacity) const;

 private:
  struct Sums {
    Bytes slices;
    Bytes swap;  // the largest
    bool whole = false;
  };
  // Until `visit` returns false.
  template <class Visit>
  void for_each_moment(WallTime from, WallTime until, Against against, Visit visit) const;

  std::vector<Use> uses_;
};

}  // namespace gpurota::lease
