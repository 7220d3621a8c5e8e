// Which GPUs a new lease gets. Pure: same inputs, same answer.
//
// All or nothing. GPUs in unreserved use are left out. Slices go where they fit best (least room
// left over); whole GPUs go in the order they have been idle longest.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "core/gpu.h"
#include "core/lease.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::lease {

// One GPU as placement sees it.
struct GpuRoom {
  GpuInfo info;
  Bytes capacity;        // size less what the driver keeps
  Bytes reserved;        // promised to slices
  Bytes unreserved_use;  // held by processes of no lease
  int leases = 0;
  bool exclusive = false;          // one of the leases has it whole
  bool in_unreserved_use = false;  // unreserved_use is above the site's threshold
  Bytes context_cost;              // what a context was last seen to cost here; zero: not known
  WallTime idle_since;             // when the last lease left; epoch: never used
  std::string error;               // not empty: the GPU is broken
  std::string holders;             // "alice (L3, 8 GiB), bob (L4, 8 GiB)": for refusals
};

struct PlacementRequest {
  int count = 1;                   // used when `gpus` is empty
  std::vector<GpuUuid> gpus;       // these, in this order
  std::optional<SizeSpec> memory;  // empty: exclusive
  std::optional<SizeSpec> soft_limit;
};

struct Refusal {
  Error error;    // kInvalid, kLimit or kNoGpu, with a message for the user
  int free = 0;   // GPUs that would have done
  int total = 0;  // GPUs that can be leased
};

// The GPUs of the lease, or why not. A request that no state of this machine could fill is kInvalid
// or kLimit; one that only has to wait is kNoGpu.
tl::expected<std::vector<LeaseGpu>, Refusal> place(const PlacementRequest& request,
                                                   const std::vector<GpuRoom>& rooms);

}  // namespace gpurota::lease
