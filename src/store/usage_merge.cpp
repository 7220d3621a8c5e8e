#include "store/usage_merge.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace gpurota::store {
namespace {

using ports::StoredUsage;
using Rows = std::vector<StoredUsage>;
using Group =
    std::tuple<std::ptrdiff_t, WallTime::duration::rep, std::string, std::string, GpuUuid>;

bool is_within(const StoredUsage& row, WallTime::duration span) {
  return row.since.time_since_epoch() / span == row.until.time_since_epoch() / span;
}

Group group_of(const StoredUsage& row, WallTime::duration span, const std::vector<LeaseId>& apart) {
  const auto before = std::lower_bound(apart.begin(), apart.end(), row.lease) - apart.begin();
  return {before, row.until.time_since_epoch() / span, row.kind, row.group, row.gpu};
}

void add(StoredUsage& into, const StoredUsage& row) {
  if (into.note != row.note) into.note.clear();
  into.since = std::min(into.since, row.since);
  into.until = std::max(into.until, row.until);
  into.gpu_ms += row.gpu_ms;
  into.mib_ms += row.mib_ms;
  into.busy_ms += row.busy_ms;
  into.idle_ms += row.idle_ms;
  into.merged += row.merged;
  into.merged_first += row.merged_first;
}

// The end of the rows of the lease that begins at `row`.
Rows::const_iterator end_of_lease(Rows::const_iterator row, Rows::const_iterator end) {
  return std::find_if(row, end, [&](const StoredUsage& each) { return each.lease != row->lease; });
}

}  // namespace

Rows merge_usage(const Rows& rows, WallTime::duration span, const std::vector<LeaseId>& apart) {
  Rows merged;
  std::map<Group, std::size_t> groups;
  for (auto lease = rows.begin(); lease != rows.end();) {
    const auto end = end_of_lease(lease, rows.end());
    // Merges all rows of a lease or none: otherwise a merged row and another one would both count
    // the lease.
    const bool fits =
        std::all_of(lease, end, [&](const StoredUsage& row) { return is_within(row, span); });
    for (auto row = lease; row != end; ++row) {
      StoredUsage fresh = *row;
      if (fits && fresh.merged == 0) {
        fresh.merged = 1;
        fresh.merged_first = row == lease ? 1 : 0;
      }
      if (!fits) {
        merged.push_back(std::move(fresh));
        continue;
      }
      const auto [at, is_new] = groups.try_emplace(group_of(fresh, span, apart), merged.size());
      if (is_new) {
        merged.push_back(std::move(fresh));
      } else {
        add(merged[at->second], fresh);
      }
    }
    lease = end;
  }
  return merged;
}

}  // namespace gpurota::store
