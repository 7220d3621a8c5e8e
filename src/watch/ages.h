// Ages of what the watch sees, which the next daemon takes over. Plain data.
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
  // One of the processes of the finding, with its start time. If the same process is still there,
  // the finding has not ended meanwhile. {0, 0}: the finding has no process.
  std::pair<pid_t, std::uint64_t> process{};

  bool operator==(const Age&) const = default;
};

// How long after a restart the stored ages are used.
inline constexpr Duration kAgesKept = std::chrono::minutes(1);
// A shorter time without use of a GPU by its lease is not stored.
inline constexpr Duration kLeastAge = std::chrono::minutes(1);

}  // namespace gpurota::watch
