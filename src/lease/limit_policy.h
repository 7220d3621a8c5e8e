// Decides about leases that hold more than their soft limit, or more than a lowered hard limit.
// Pure: takes one sample of one GPU, and returns warnings and the leases to stop. Used on the state
// thread.
//
// A lease gets one warning each time that it goes above its soft limit. Where the site stops such
// leases, each gets its grace period. If the grace periods of several leases are over, the lease of
// lowest priority (among equals the newest) is stopped first, and the others are judged again once
// its memory is free.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/time.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpurota::lease {

struct LimitRules {
  bool stop_above_soft = false;
  Duration soft_grace{};
  bool stop_above_lowered = false;
  Duration lowered_grace{};
};

// A lease with a limit on the sampled GPU.
struct LimitedLease {
  LeaseId lease;
  int priority = 0;
  bool ending = false;
  Bytes limit;
  std::optional<Bytes> soft_limit;
  Bytes charged;
  Bytes granted;           // the part of `charged` that was granted to tenants
  bool gives_way = false;  // memory above the soft limit is moved out first
};

struct LimitAction {
  enum class Kind {
    kWarn,  // log it, and notify the owner
    kStop,  // end the lease; `message` is the reason
  };
  Kind kind = Kind::kWarn;
  LeaseId lease;
  std::string message;
};

class LimitPolicy {
 public:
  std::vector<LimitAction> decide(const GpuUuid& gpu, const std::vector<LimitedLease>& leases,
                                  const LimitRules& rules, TimePoint now);
  void forget(LeaseId lease);

 private:
  struct Seen {
    Bytes limit;
    std::optional<TimePoint> above_soft;     // since when
    std::optional<TimePoint> above_lowered;  // since the limit was lowered
  };

  void judge(const LimitedLease& lease, Seen& seen, const LimitRules& rules, TimePoint now,
             std::vector<LimitAction>& actions);

  std::map<std::pair<LeaseId, GpuUuid>, Seen> seen_;
};

}  // namespace gpurota::lease
