// Ages of what the watch sees, with which the next daemon goes on. Plain data.
#pragma once

#include "watch/finding.h"

#include <optional>
#include <utility>
#include <vector>

namespace gpurota::watch {

struct Age {
  FindingKind kind = FindingKind::kUnused;
  GpuUuid gpu;
  std::optional<uid_t> uid;
  std::optional<LeaseId> lease;
  TimePoint since{};
  // One of the processes that it is about, with its start: the same one says that nothing has ended
  // meanwhile. {0, 0}: it is about none.
  std::pair<pid_t, std::uint64_t> process{};

  bool operator==(const Age&) const = default;
};

// How long after a restart what was seen before is taken up.
inline constexpr Duration kAgesKept = std::chrono::minutes(1);
// A GPU that its lease has not used for less is not worth storing.
inline constexpr Duration kLeastAge = std::chrono::minutes(1);

}  // namespace gpurota::watch
