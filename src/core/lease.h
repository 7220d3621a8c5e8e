// A lease: the right of one user to use some GPUs until something ends it. Plain data.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/compute_share.h"
#include "core/end_warning.h"
#include "core/latency_class.h"
#include "core/park_state.h"
#include "core/time.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota {

// The most GPUs of one lease: the slots of the page that it shares with each of its processes.
constexpr int kMaxLeaseGpus = 16;

// The part of one GPU that a lease has.
struct LeaseGpu {
  GpuUuid uuid;
  std::optional<Bytes> limit;       // empty: the whole GPU, exclusively
  std::optional<Bytes> soft_limit;  // never above the limit
  bool swap = false;                // the limit is not reserved: swap leases use the GPU in turns
  Bytes oversize{};  // of swap: how much beyond the limit it may have, in host memory
  // The highest limit that it has had, if the limit has been lowered: what was granted under the
  // highest one may still be held.
  Bytes highest_limit{};
  ComputeShare compute{};  // only of a slice of one GPU
  bool operator==(const LeaseGpu&) const = default;
};

// kEnding: its processes are being ended, or its memory is not free yet. kExpired: the time of a
// reservation is over, but its programs still hold memory. Both keep their GPUs and memory.
enum class LeaseState { kActive, kEnding, kExpired };

// The kind decides what ends a lease: `run`: the end of its command; `reservation`: a time;
// `filler`: anybody who needs the GPU. The other kinds are made by parts of gpurota, and end with
// the job, pod or Slurm job that they were made for.
enum class LeaseKind { kRun, kReservation, kJob, kFiller, kPod, kSlurm };
// Whether leases of this kind are held by no process, so that the end of a process does not end
// them.
constexpr bool stands_alone(LeaseKind kind) {
  return kind == LeaseKind::kReservation || kind == LeaseKind::kPod;
}

// "run", "reservation", …: for people, the store and the protocol; stable.
const char* to_string(LeaseKind kind);
std::optional<LeaseKind> parse_lease_kind(std::string_view word);

struct Lease {
  LeaseId id;
  LeaseKind kind = LeaseKind::kRun;
  uid_t uid = 0;  // as reported by the kernel, never by a client
  LeaseState state = LeaseState::kActive;
  WallTime since;
  std::optional<WallTime> ends;  // its enforced end; empty: it ends with its command, pod or job
  std::vector<LeaseGpu> gpus;
  int priority = 0;  // higher goes first in turns, and is stopped last
  // The length of its turns; zero: by what moving costs; empty: as set for its GPUs.
  std::optional<std::chrono::milliseconds> quantum;
  LatencyClass latency = LatencyClass::kNormal;  // interactive: not with a whole GPU
  // Untrusted bytes, shown beside the uid: the person of a shared account; for a pod
  // NAMESPACE/POD/CONTAINER.
  std::string as_name;
  std::string name;                  // its owner's name for it (lease_name.h); empty: none
  std::string note;                  // untrusted bytes
  std::vector<std::string> command;  // untrusted bytes
  EndWarning warning{};              // for its programs
  // When it leaves for a booking, at the earliest; empty: no such booking is known.
  std::optional<WallTime> leaves{};
  bool warned = false;  // about `ends` or `leaves`, whichever comes first
  ParkState park = ParkState::kNone;

  bool exclusive() const { return !gpus.empty() && !gpus.front().limit; }
  bool swap() const { return !gpus.empty() && gpus.front().swap; }
  Bytes oversize() const {
    Bytes sum;
    for (const LeaseGpu& gpu : gpus) sum += gpu.oversize;
    return sum;
  }
  ComputeShare compute() const { return gpus.empty() ? ComputeShare() : gpus.front().compute; }
  const LeaseGpu* find_gpu(const GpuUuid& uuid) const {
    for (const LeaseGpu& gpu : gpus) {
      if (gpu.uuid == uuid) return &gpu;
    }
    return nullptr;
  }
};

}  // namespace gpurota
