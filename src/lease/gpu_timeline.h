// The timeline of one GPU: which shares are taken, from when until when, by current leases and by
// those that the queue has planned. Pure.
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
  // Bits, so that a set of them is a number.
  enum class Source : unsigned {
    kLease = 1,
    kFiller = 2,
    kPlan = 4,       // of a request that waits
    kProtected = 8,  // the same, of the request that nobody may delay (keeping.h)
    kLapsed = 16,  // the same, on a GPU that has been kept for so long that anybody may start there
    kDue = 32,  // of a request that starts once the fillers there have gone; no filler may take it
    kBooking = 64,  // promised for later; fillers go when its time comes
  };
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
  // The uses that a request has to leave alone. Fillers leave when anybody else asks; a filler
  // itself takes what nobody has, planned and booked or not.
  enum class Against : unsigned {
    kLeasesAndFillers =
        static_cast<unsigned>(Source::kLease) | static_cast<unsigned>(Source::kFiller),
    kAllButPlans = kLeasesAndFillers | static_cast<unsigned>(Source::kDue),  // of a filler
    kPromised = kAllButPlans | static_cast<unsigned>(Source::kBooking),
    kAll = kPromised | static_cast<unsigned>(Source::kPlan) |
           static_cast<unsigned>(Source::kProtected) | static_cast<unsigned>(Source::kLapsed),
    kAllButFillers =
        kAll & ~static_cast<unsigned>(Source::kFiller),  // of a request that starts later
    kStart =
        kAllButFillers & ~static_cast<unsigned>(Source::kLapsed),  // of a request that starts now
    // The same, of a request that has been blocked for long enough.
    kOpenStart = kStart & ~static_cast<unsigned>(Source::kPlan),
  };
  // `against` without what is booked.
  static constexpr Against without_bookings(Against against) {
    return static_cast<Against>(static_cast<unsigned>(against) &
                                ~static_cast<unsigned>(Source::kBooking));
  }

  void add(const Use& use) { uses_.push_back(use); }
  const std::vector<Use>& uses() const { return uses_; }

  // Whether this share of `capacity` can be had all the time of [from, until).
  bool fits(const Share& share, WallTime from, WallTime until, Against against,
            Bytes capacity) const;
  // False: what has no end leaves no room for it, whenever it begins after `now`. `endless`: it
  // would have no end either. Cheap.
  bool may_fit(const Share& share, WallTime now, bool endless, Against against,
               Bytes capacity) const;
  // The most that is taken of it at once within [from, until); nothing if somebody has it whole.
  std::optional<Bytes> taken(WallTime from, WallTime until, Against against) const;
  // The same of slices only.
  Bytes slices(WallTime from, WallTime until, Against against) const;

 private:
  struct Sums {
    Bytes slices;
    Bytes swap;  // the largest
    bool whole = false;

    void add(const Share& share);
    bool leave(const Share& share, Bytes capacity) const;
  };
  // Until `visit` returns false.
  template <class Visit>
  void for_each_moment(WallTime from, WallTime until, Against against, Visit visit) const;

  std::vector<Use> uses_;
};

}  // namespace gpurota::lease
