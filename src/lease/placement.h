// Requests for GPUs, the room on a GPU, and requests that no state of a machine could fill. Pure.
//
// Only the planner decides whether a request fits now, and when (planner.h, admission.h).
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

// One GPU for placement.
struct GpuRoom {
  GpuInfo info;
  Bytes capacity;        // size less what the driver keeps
  Bytes reserved;        // promised to slices; all, if a lease has the whole GPU
  Bytes unreserved_use;  // held by processes of no lease
  Bytes machine_use{};   // of a unified GPU: the machine's memory in use by other programs
  Bytes above_limits{};  // held by slices beyond what was promised to them, as NVML shows it
  int leases = 0;
  Bytes swap_capacity;     // part of `capacity` for swap leases, if nobody else is there
  Bytes swap_needed;       // the largest swap lease, plus what the others cannot move; zero: none
  Bytes swap_wired;        // what swap leases hold and cannot move
  int swap_leases = 0;     // of `leases`
  bool exclusive = false;  // a lease has the whole GPU
  bool in_unreserved_use = false;        // unreserved_use is above the site's threshold
  std::map<uid_t, Bytes> unreserved_by;  // by user, as far as known
  Bytes context_cost;        // the least that a context was seen to cost here; zero: unknown
  WallTime idle_since;       // when the last lease left; epoch: never used
  std::string error;         // not empty: the GPU is broken
  bool draining = false;     // an administrator takes it out of service
  std::string drain_reason;  // untrusted bytes
  std::string holders;       // "alice (L3, 8 GiB), bob (L4, 8 GiB)": for refusals
  // Memory in use that no listed process has, and that does not count as unreserved use.
  Bytes hidden{};
  // Whether `hidden` is so large that it is taken for the memory of an ended program.
  bool is_freeing = false;
  int compute_promised = 0;  // percent of the compute time, to all leases there
};

struct PlacementRequest {
  int count = 1;                   // used when `gpus` is empty
  std::vector<GpuUuid> gpus;       // these, in this order
  std::optional<SizeSpec> memory;  // empty: exclusive; with swap: all that a turn can have
  std::optional<SizeSpec> soft_limit;
  std::vector<GpuUuid> preferred{};  // what the user had last: used first, if whole and free
  // Use without a lease does not count up to this amount; empty: up to the site's threshold.
  std::optional<Bytes> threshold{};
  std::optional<uid_t> take_over{};  // use without a lease by this user is no obstacle
  bool swap = false;                 // takes turns with other swap leases
  bool oversize = false;             // memory beyond what a turn can have stays on the host
  GpuWishes wishes{};                // used when `gpus` is empty
  ComputeShare compute{};            // only `least` decides about GPUs

  bool exclusive() const { return !memory && !swap; }
  bool operator==(const PlacementRequest&) const = default;
};

struct Refusal {
  Error error;                     // kInvalid, kLimit or kNoGpu, with a message for the user
  int free = 0;                    // GPUs that would have been suitable
  int total = 0;                   // GPUs that can be leased
  std::optional<Reason> reason{};  // for kNoGpu: what it would wait for
};

// Why the request could not start in any state of this machine; nothing: it could.
std::optional<Refusal> impossible(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms);

// The name of the GPU for people (gpu_selector.h).
std::string name_of(const GpuRoom& room, const std::vector<GpuRoom>& rooms);
// Whether the GPU can be leased: not if it is split into MIG instances, which can be leased
// instead.
bool leasable(const GpuRoom& room);
// The GPUs that the request may get in principle, free or not: the named GPUs, else all of its kind
// that can be leased. A request for several unnamed GPUs gets only whole GPUs. If there are too few
// whole GPUs, and more MIG instances than whole GPUs, the request gets only MIG instances. Only a
// request that names both kinds gets both.
std::vector<const GpuRoom*> meant(const PlacementRequest& request,
                                  const std::vector<GpuRoom>& rooms);
// Why nothing is planned on the GPU for this request: the GPU is broken or draining; or, for a
// request for whole GPUs, in unreserved use or still being freed. Empty: it is in service. The text
// follows "GPU 3 ".
std::string out_of_service(const PlacementRequest& request, const GpuRoom& room);
// The leases, or the use without one, that keep the request from this GPU now. The text follows
// "GPU 3 ".
std::string what_is_there(const PlacementRequest& request, const GpuRoom& room);
// Whether the two ask for the same, apart from the preferred GPUs.
bool asks_the_same(const PlacementRequest& a, const PlacementRequest& b);
// The room for slices, or for swap leases, without any lease on the GPU.
Bytes capacity_for(const PlacementRequest& request, const GpuRoom& room);
// The least memory that the request must get there; never called for an exclusive request. A swap
// lease without a limit, or with one above what a turn can have, gets what slices leave, but at
// least half of the GPU.
Bytes least_of(const PlacementRequest& request, const GpuRoom& room);
// `slices`: the memory that is promised to slices when the share is made.
LeaseGpu make_share(const PlacementRequest& request, const GpuRoom& room, Bytes slices);
// While one lease has all the memory that it may have, the memory that other leases cannot move
// (contexts, modules) stays on the GPU. Returns how much of the GPU to keep for this purpose.
Bytes residue_allowance(Bytes capacity);

}  // namespace gpurota::lease
