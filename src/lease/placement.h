// Requests for GPUs, the room on a GPU, and requests that no state of a machine could fill. Pure.
//
// Whether a request fits now, or when, is the planner's to say (planner.h, admission.h).
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "core/gpu.h"
#include "core/gpu_wishes.h"
#include "core/lease.h"
#include "core/reason.h"
#include "core/topology.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::lease {

// One GPU as placement sees it.
struct GpuRoom {
  GpuInfo info;
  Bytes capacity;        // size less what the driver keeps
  Bytes reserved;        // promised to slices; a lease that has it whole: all
  Bytes unreserved_use;  // held by processes of no lease
  Bytes machine_use{};   // of a unified GPU: in use of the machine's memory by other programs
  Bytes above_limits{};  // held by slices beyond what was promised to them, as NVML shows it
  int leases = 0;
  Bytes swap_capacity;     // what swap leases may have of `capacity` when nobody else is there
  Bytes swap_needed;       // the largest of them, with what the others cannot move; zero: none
  Bytes swap_wired;        // what they have and cannot move
  int swap_leases = 0;     // of `leases`
  bool exclusive = false;  // one of the leases has it whole
  bool in_unreserved_use = false;        // unreserved_use is above the site's threshold
  std::map<uid_t, Bytes> unreserved_by;  // whose it is, as far as that is known
  Bytes context_cost;        // what a context was last seen to cost here; zero: not known
  WallTime idle_since;       // when the last lease left; epoch: never used
  std::string error;         // not empty: the GPU is broken
  bool draining = false;     // an administrator takes it out of service
  std::string drain_reason;  // foreign bytes
  std::string holders;       // "alice (L3, 8 GiB), bob (L4, 8 GiB)": for refusals
  // Memory in use that no listed process has, and that is not in unreserved_use.
  Bytes hidden{};
  // There is so much of that that it is taken for memory of an ended program.
  bool is_freeing = false;
};

struct PlacementRequest {
  int count = 1;                   // used when `gpus` is empty
  std::vector<GpuUuid> gpus;       // these, in this order
  std::optional<SizeSpec> memory;  // empty: exclusive; of swap: all that a turn can have
  std::optional<SizeSpec> soft_limit;
  std::vector<GpuUuid> preferred{};  // what the user had last: taken first, if whole and free
  // Use without a lease counts above so much; empty: above the site's threshold.
  std::optional<Bytes> threshold{};
  std::optional<uid_t> take_over{};  // use without a lease by this user's processes is no obstacle
  bool swap = false;                 // in turns with other swap leases
  bool oversize = false;             // what of `memory` a turn cannot have lies in host memory
  GpuWishes wishes{};                // used when `gpus` is empty

  bool exclusive() const { return !memory && !swap; }
  bool operator==(const PlacementRequest&) const = default;
};

struct Refusal {
  Error error;                     // kInvalid, kLimit or kNoGpu, with a message for the user
  int free = 0;                    // GPUs that would have done
  int total = 0;                   // GPUs that can be leased
  std::optional<Reason> reason{};  // of kNoGpu: what it would wait for
};

// Why no state of this machine could ever fill the request, if none could.
std::optional<Refusal> impossible(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms);

// The name of the GPU for people (gpu_selector.h).
std::string name_of(const GpuRoom& room, const std::vector<GpuRoom>& rooms);
// Of one GPU, the parts that the queue plans with.
bool leasable(const GpuRoom& room);
// The GPUs that the request is for, whoever has them: those that it names; else those of its kind
// that can be leased. Several are all whole GPUs, or all MIG instances where there are too few of
// those: together only if they are named.
std::vector<const GpuRoom*> meant(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms);
// Broken, draining or in unreserved use: nothing is planned on it. The words go behind "GPU 3 ".
std::string out_of_service(const PlacementRequest& request, const GpuRoom& room);
// The leases, or use without one, that keep the request from this GPU now. The words go behind "GPU
// 3 ".
std::string what_is_there(const PlacementRequest& request, const GpuRoom& room);
// Whether what fits one fits the other: all is the same but the GPUs that they would rather have.
bool asks_the_same(const PlacementRequest& a, const PlacementRequest& b);
// Room for slices, or for swap leases, when no lease is on it.
Bytes capacity_for(const PlacementRequest& request, const GpuRoom& room);
// The least memory that the request must get there; never called for an exclusive request. The
// limit of a swap lease that names none, or more than a turn can have, is what slices leave it, but
// no less than half of the GPU.
Bytes least_of(const PlacementRequest& request, const GpuRoom& room);
// `slices`: what is promised to them when the share is taken.
LeaseGpu make_share(const PlacementRequest& request, const GpuRoom& room, Bytes slices);
// The memory that other leases need for what they cannot move (contexts, modules), beside one lease
// that has all it may.
Bytes residue_allowance(Bytes capacity);

}  // namespace gpurota::lease
