// Merges many rows of one user's usage into few, so that the sums of reports stay right. Pure; used
// by SqliteStore.
//
// Leases that began and ended in the same span of time (an hour, a day) are merged by kind and
// group of the user, for each GPU. Notes that differ are dropped. Of merged leases only their
// number is known. A lease may have several GPUs, so a row has two numbers: `merged` is how many
// leases had this GPU, `merged_first` how many of them are counted by no other row.
#pragma once

#include "ports/history.h"

#include <vector>

namespace gpurota::store {

// `rows`: all rows of ended leases, in the order of lease numbers and GPUs. A merged row has the
// number and GPU of one of the rows it is made of. `apart`: lease numbers, in ascending order;
// leases up to and including such a number are not merged with later leases.
std::vector<ports::StoredUsage> merge_usage(const std::vector<ports::StoredUsage>& rows,
                                            WallTime::duration span,
                                            const std::vector<LeaseId>& apart);

}  // namespace gpurota::store
