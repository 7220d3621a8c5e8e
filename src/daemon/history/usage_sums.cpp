#include "daemon/history/usage_sums.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// A row without duration counts in full, because its lease did exist.
double part_of(const ports::StoredUsage& row, const UsageSums::Asked& asked) {
  const auto whole = row.until - row.since;
  if (whole.count() <= 0) return 1;
  const auto within = std::min(row.until, asked.until) - std::max(row.since, asked.since);
  return static_cast<double>(within.count()) / static_cast<double>(whole.count());
}

}  // namespace

UsageSums::Key UsageSums::key_of(const ports::StoredUsage& row) const {
  switch (asked_.by) {
    case ports::UsageBy::kUser:
      break;
    case ports::UsageBy::kGroup:
      return {row.uid, row.group};
    case ports::UsageBy::kNote:
      if (hides_(row.uid)) return {row.uid, std::nullopt};
      return {row.uid, row.note};
    case ports::UsageBy::kGpu:
      return {row.uid, row.gpu.value};
    case ports::UsageBy::kKind:
      return {row.uid, row.kind};
  }
  return {row.uid, ""};
}

std::optional<std::pair<UsageSums::Key, UsageSums::Sum>> UsageSums::take() {
  if (sums_.empty()) return std::nullopt;
  std::pair<Key, Sum> first = *sums_.begin();
  sums_.erase(sums_.begin());
  return first;
}

void UsageSums::add(const std::vector<ports::StoredUsage>& rows) {
  for (const ports::StoredUsage& row : rows) {
    if (row.until < asked_.since || row.since > asked_.until) continue;
    Sum& sum = sums_[key_of(row)];
    const double part = part_of(row, asked_);
    sum.gpu_ms += static_cast<double>(row.gpu_ms) * part;
    sum.mib_ms += static_cast<double>(row.mib_ms) * part;
    sum.busy_ms += static_cast<double>(row.busy_ms) * part;
    sum.idle_ms += static_cast<double>(row.idle_ms) * part;
    if (row.merged > 0) {
      sum.leases += asked_.by == ports::UsageBy::kGpu ? row.merged : row.merged_first;
      continue;
    }
    if (sum.last != row.lease) ++sum.leases;
    sum.last = row.lease;
  }
}

}  // namespace gpurota::daemon
