// Many rows of one user's usage become few, so that the sums of reports stay right. Pure; used by
// SqliteStore.
//
// Leases that began and ended in the same span of time (an hour, a day) are merged by kind and
// group of the user, for each GPU. Notes that differ are forgotten. Of leases that are merged only
// their number is known, as these have several GPUs: `merged` of a row is how many leases had this
// GPU, `merged_first` how many of them no other row counts.
#pragma once

#include "ports/history.h"

#include <vector>

namespace gpurota::store {

// `rows`: all of their leases, ended ones, in the order of their numbers and GPUs. A merged row has
// the number and GPU of one of those it is made of. Leases with one of `apart` (sorted) between
// their numbers are not merged: a lease of that number belongs to those before.
std::vector<ports::StoredUsage> merge_usage(const std::vector<ports::StoredUsage>& rows,
                                            WallTime::duration span,
                                            const std::vector<LeaseId>& apart);

}  // namespace gpurota::store
