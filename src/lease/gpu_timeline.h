// The timeline of one GPU: which shares are taken, and from when until when, by current leases and
// by planned requests. Pure.
#pragma once

#include "base/bytes.h"
#include "core/compute_share.h"
#include "core/time.h"

#include <optional>
#include <vector>

#include <sys/types.h>

namespace gpurota::lease {

// The `until` of a use whose end is unknown.
constexpr WallTime kNever = WallTime::max();

class GpuTimeline {
 public:
  // Bits, so that sets of sources are numbers.
  enum class Source : unsigned {
    kLease = 1,
    kFiller = 2,
    kPlan = 4,       // of a waiting request
    kProtected = 8,  // of the waiting request that nobody may delay (keeping.h)
    kLapsed = 16,    // of a waiting request, on a GPU kept for so long that anybody may start there
    kDue = 32,  // of a request that starts once the fillers there have left; no filler may start
    kBooking = 64,  // promised for later; fillers leave when its time comes
  };
  // Slices add up. Swap leases take turns, so only the largest counts.
  struct Share {
    std::optional<Bytes> bytes;  // empty: the whole GPU
    bool swap = false;
    int compute = 0;  // percent of the compute time; adds up, to kMostComputeShare at most
    uid_t uid = 0;    // the user
    // Of a share that is wanted: the most to which all shares of its user add up.
    int most_of_user = kMostComputeShare;
  };
  struct Use {
    WallTime from;
    WallTime until;
    Share share;
    Source source = Source::kLease;
  };
  // The uses that a request must not disturb. Fillers leave for any other request. A filler itself
  // may take planned and booked GPUs, but none that is in use.
  enum class Against : unsigned {
    kLeasesAndFillers =
        static_cast<unsigned>(Source::kLease) | static_cast<unsigned>(Source::kFiller),
    kAllButPlans = kLeasesAndFillers | static_cast<unsigned>(Source::kDue),  // for a filler
    kPromised = kAllButPlans | static_cast<unsigned>(Source::kBooking),
    kAll = kPromised | static_cast<unsigned>(Source::kPlan) |
           static_cast<unsigned>(Source::kProtected) | static_cast<unsigned>(Source::kLapsed),
    kAllButFillers =
        kAll & ~static_cast<unsigned>(Source::kFiller),  // for a request that starts later
    kStart =
        kAllButFillers & ~static_cast<unsigned>(Source::kLapsed),  // for a request that starts now
    // For a request that starts now and has been blocked for long enough.
    kOpenStart = kStart & ~static_cast<unsigned>(Source::kPlan),
  };
  // `against` without bookings.
  static constexpr Against without_bookings(Against against) {
    return static_cast<Against>(static_cast<unsigned>(against) &
                                ~static_cast<unsigned>(Source::kBooking));
  }

  void add(const Use& use) { uses_.push_back(use); }
  const std::vector<Use>& uses() const { return uses_; }

  // Whether this share of `capacity` and of the compute time is available during all of [from,
  // until).
  bool fits(const Share& share, WallTime from, WallTime until, Against against,
            Bytes capacity) const;
  // False: uses without an end leave no room for the share, whenever it begins after `now`.
  // `endless`: the share has no end either. Cheap.
  bool may_fit(const Share& share, WallTime now, bool endless, Against against,
               Bytes capacity) const;
  // The most that is taken at any one time within [from, until); nullopt: somebody has the whole
  // GPU.
  std::optional<Bytes> taken(WallTime from, WallTime until, Against against) const;
  // The most that slices alone take at any one time within [from, until).
  Bytes slices(WallTime from, WallTime until, Against against) const;

 private:
  struct Sums {
    Bytes slices;
    Bytes swap;  // the largest
    bool whole = false;
    int compute = 0;
    uid_t uid = 0;
    int of_user = 0;  // of `compute`: this user's

    void add(const Share& share);
    bool leave(const Share& share, Bytes capacity) const;
  };
  // Stops when `visit` returns false.
  template <class Visit>
  void for_each_moment(WallTime from, WallTime until, Against against, Visit visit,
                       uid_t uid = 0) const;

  std::vector<Use> uses_;
};

}  // namespace gpurota::lease
