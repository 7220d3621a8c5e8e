// A lease: the right of one user to use some GPUs until something ends it. Plain data.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "core/end_warning.h"
#include "core/time.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota {

// GPUs one lease can hold: the slots of the page it shares with each of its processes.
constexpr int kMaxLeaseGpus = 16;

// The part of one GPU that a lease has.
struct LeaseGpu {
  GpuUuid uuid;
  std::optional<Bytes> limit;       // empty: the whole GPU, exclusively
  std::optional<Bytes> soft_limit;  // never above the limit
  bool swap = false;  // the limit is no share of its own: swap leases take turns with it
  Bytes oversize{};   // of swap: what it may have beyond the limit, in host memory
  // The highest limit that it has had, if it has been lowered: what was granted under that may be
  // held still.
  Bytes highest_limit{};
  bool operator==(const LeaseGpu&) const = default;
};

// kEnding: its processes are being ended, or its memory is not back yet. kExpired: the time of a
// reservation is over, but its programs hold memory still. Both hold what they held.
enum class LeaseState { kActive, kEnding, kExpired };

// The kind says what ends a lease: `run` its command, `reservation` a time, `filler` anybody who
// needs the GPU. The others are made by parts of gpurota and end with what they stand for.
enum class LeaseKind { kRun, kReservation, kJob, kFiller, kPod, kSlurm };
// Whether no process holds it: nobody's end is its end.
constexpr bool stands_alone(LeaseKind kind) {
  return kind == LeaseKind::kReservation || kind == LeaseKind::kPod;
}

// "run", "reservation", …: for people, the store and the protocol; stable.
const char* to_string(LeaseKind kind);
std::optional<LeaseKind> parse_lease_kind(std::string_view word);

struct Lease {
  LeaseId id;
  LeaseKind kind = LeaseKind::kRun;
  uid_t uid = 0;  // from the kernel, never from what a client says
  LeaseState state = LeaseState::kActive;
  WallTime since;
  std::optional<WallTime> ends;  // its enforced end; empty: when what it is for has ended
  std::vector<LeaseGpu> gpus;
  int priority = 0;  // higher goes first: turns, and who is stopped last
  // Of its turns; zero: by what moving costs; empty: as its GPUs say.
  std::optional<std::chrono::milliseconds> quantum;
  // Foreign bytes, shown beside the uid: who of a shared account; of a pod NAMESPACE/POD/CONTAINER.
  std::string as_name;
  std::string name;                  // what its owner calls it (lease_name.h); empty: nothing
  std::string note;                  // foreign bytes
  std::vector<std::string> command;  // foreign bytes
  EndWarning warning{};              // that its programs get
  std::optional<WallTime> leaves{};  // by then, for a booking; empty: it is not known to leave
  bool warned = false;               // of `ends` or `leaves`, whichever comes first

  bool exclusive() const { return !gpus.empty() && !gpus.front().limit; }
  bool swap() const { return !gpus.empty() && gpus.front().swap; }
  Bytes oversize() const {
    Bytes sum;
    for (const LeaseGpu& gpu : gpus) sum += gpu.oversize;
    return sum;
  }
  const LeaseGpu* find_gpu(const GpuUuid& uuid) const {
    for (const LeaseGpu& gpu : gpus) {
      if (gpu.uuid == uuid) return &gpu;
    }
    return nullptr;
  }
};

}  // namespace gpurota
