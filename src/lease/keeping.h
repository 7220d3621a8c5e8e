// How long free GPUs are kept for one request that needs more of them. Pure.
//
// A large request could never start if whoever needs one GPU took each that comes free. And a single one, waiting for a lease
// that ends some day, would have a machine stand idle. So what is free is kept for it so long, then anybody may have it for as
// long, and so on. Its place in the line it has all the time: what it needs goes to it first whenever all of it is free.
#pragma once

#include "core/time.h"

#include <optional>

namespace gpurota::lease {

class Keeping {
 public:
  // At each decision: whether something that is free is kept for it, or would be. `most`: of the site; zero: for ever.
  void look(bool something_is_free, Duration most, TimePoint now);

  // False: others may have what is free.
  bool keeps() const { return !others_until_; }
  // When that changes, if nothing else happens.
  std::optional<TimePoint> changes_at(Duration most) const;

 private:
  Duration kept_{};  // so far
  std::optional<TimePoint> since_;
  std::optional<TimePoint> others_until_;
};

}  // namespace gpurota::lease
