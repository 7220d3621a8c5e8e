#include "jobs/chain.h"

namespace gpurota::jobs {

Verdict verdict_of(Link link, const std::optional<Before>& before) {
  const Verdict no_success = link == Link::kSuccess ? Verdict::kNever : Verdict::kMet;
  if (!before) return no_success;
  switch (before->phase) {
    case Phase::kFinished:
      return Verdict::kMet;
    case Phase::kFailed:
    case Phase::kCancelled:
      return no_success;
    case Phase::kStopped:
      if (before->ran || before->removed) return no_success;
      break;
    case Phase::kWaiting:
    case Phase::kRunning:
    case Phase::kStopping:
    case Phase::kBackingOff:
    case Phase::kChained:
      if (before->removed && link == Link::kSuccess) return Verdict::kNever;
      break;
  }
  return Verdict::kWaits;
}

}  // namespace gpurota::jobs
