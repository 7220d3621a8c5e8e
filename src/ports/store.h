// State that outlives the daemon. SQLite in production (also `:memory:` in tests). Foreign bytes
// are text from users, which may have any bytes, not only UTF-8.
//
// Called on the state thread. Each call is one transaction. Once a call has returned success, a
// kill -9 does not lose its change; ports/durability.h reports when the change survives a loss of
// power, too.
#pragma once

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "core/compute_share.h"
#include "core/end_warning.h"
#include "core/gpu_wishes.h"
#include "core/latency_class.h"
#include "core/park_state.h"
#include "core/time.h"
#include "ports/process_id.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::ports {

struct StoredGpu {
  GpuUuid uuid;
  std::optional<Bytes> limit;  // empty: exclusive
  std::optional<Bytes> soft_limit;
  bool swap = false;
  Bytes oversize{};
  Bytes highest_limit{};
  ComputeShare compute{};
  bool operator==(const StoredGpu&) const = default;
};

struct StoredContainer {
  uid_t uid = 0;
  std::string group;  // the absolute path of its control group

  friend bool operator==(const StoredContainer&, const StoredContainer&) = default;
};

// A command that runs under a reservation.
struct StoredCommand {
  ProcessId holder;  // its gpurota run
  ProcessId main;
  std::string cgroup;  // absolute path, or empty
  std::optional<WallTime> ends;
  bool operator==(const StoredCommand&) const = default;
};

struct StoredLease {
  LeaseId id;
  uid_t uid = 0;
  std::string kind;  // "run", "reservation", …
  std::string token;
  WallTime since;
  std::string note;                  // foreign bytes, kept exact
  std::vector<std::string> command;  // foreign bytes, kept exact
  std::vector<StoredGpu> gpus;
  std::optional<ProcessId> holder;  // the CLI
  std::optional<ProcessId> main;    // the command's first process
  std::string cgroup;               // absolute path, or empty
  std::vector<StoredContainer> containers;
  bool subreaper = false;  // the holder reported at its start that it is a subreaper
  std::string boot_id;     // of the boot in which holder and main are meaningful
  bool ending = false;
  std::optional<WallTime> ends{};  // its enforced end
  std::string as_name{};           // foreign bytes, kept exact
  std::string ticket{};            // of the request that became this lease; empty: it had none
  std::vector<StoredCommand> commands{};
  int priority = 0;
  std::optional<std::chrono::milliseconds> quantum{};  // zero: chosen by the cost of moving
  std::string name{};                                  // what its owner calls it; empty: nothing
  std::optional<RequestId> booking{};                  // the booking that became this lease
  // When the booking that became this lease began. Empty: the lease was no booking, or its user has
  // begun to use the lease.
  std::optional<WallTime> unused_since{};
  EndWarning warning{};
  std::optional<WallTime> leaves{};  // the earliest time at which it has to leave for a booking
  bool warned = false;
  bool needs_driver_limit = false;  // the site required the driver's limit when it was made
  std::string pod_uid{};            // of the only pod that uses it; empty: not known, or none
  // The control group of the container that the kubelet of this pod runs in; empty: none, or not
  // known.
  std::string kubelet_container{};
  LatencyClass latency = LatencyClass::kNormal;
  ParkState park = ParkState::kNone;
  std::vector<ProcessId> parked{};  // the processes that `park` is about, of the same boot
  bool operator==(const StoredLease&) const = default;
};

// A request that waits for a lease, or a booking.
struct StoredRequest {
  RequestId id;
  uid_t uid = 0;
  std::string kind;
  std::string ticket;
  WallTime since;
  int count = 1;              // used when `gpus` is empty
  std::vector<GpuUuid> gpus;  // in the order they were named
  std::optional<SizeSpec> memory;
  std::optional<SizeSpec> soft_limit;
  std::optional<std::chrono::milliseconds> lasts;
  bool take_over = false;
  std::string as_name;               // foreign bytes, kept exact
  std::string note;                  // foreign bytes, kept exact
  std::vector<std::string> command;  // foreign bytes, kept exact
  ProcessId holder;                  // the process that waits
  std::string boot_id;
  std::optional<Bytes> threshold{};  // of unreserved use
  bool swap = false;
  int priority = 0;
  std::optional<std::chrono::milliseconds> quantum{};
  bool oversize = false;
  GpuWishes wishes{};  // the type: foreign bytes, kept exact
  std::string name{};  // what its owner calls it; empty: nothing
  // For a booking, which is a request for a later time. No process waits for it, so it has no
  // holder and no ticket.
  std::optional<WallTime> begins{};
  std::vector<GpuUuid> kept{};       // the GPUs that are kept for it
  std::optional<WallTime> placed{};  // when `kept` was chosen; empty: when the booking was made
  // Leases without a stated end leave for a booking only if one of these is set. `on_time`: the
  // leases leave when the booking begins. `used`: the owner has asked for the booking's GPUs, so
  // the leases leave now.
  bool on_time = false;
  bool used = false;
  // For a request that waits: how long plans for other requests have kept it waiting, and how long
  // its own plan has been protected (lease/keeping.h).
  std::chrono::milliseconds blocked{};
  std::chrono::milliseconds protected_for{};
  EndWarning warning{};
  LatencyClass latency = LatencyClass::kNormal;
  ComputeShare compute{};
  bool operator==(const StoredRequest&) const = default;
};

// Since when the watch has seen something on a GPU (watch/ages.h).
struct StoredAge {
  std::string finding;  // "unused", "unreserved_use", …
  std::optional<uid_t> uid;
  std::optional<LeaseId> lease;
  WallTime since;
  std::optional<ProcessId> process{};  // the process that it is about
  std::string boot_id{};               // of the boot in which process is meaningful
  bool operator==(const StoredAge&) const = default;
};

// The memory that is normally in use on a GPU and belongs to no process (watch/hidden_memory.h).
struct StoredBaseline {
  Bytes bytes;
  std::string boot_id;  // of the boot in which it was measured
  bool operator==(const StoredBaseline&) const = default;
};

// The stored state of a GPU, in addition to the state that the driver reports.
struct StoredGpuState {
  GpuUuid uuid;
  bool draining = false;
  std::string drain_reason;  // foreign bytes, kept exact
  WallTime idle_since;       // when its last lease ended; epoch: never had one
  std::optional<uid_t> last_user;
  // Settings by an administrator while the daemon ran; empty: as the configuration says.
  std::optional<SizeSpec> capacity{};
  std::optional<std::chrono::milliseconds> quantum{};  // zero: chosen by the cost of moving
  std::string turns{};                                 // "auto", "on", "off"
  Bytes context_cost{};                                // memory of a context; zero: never measured
  std::string context_driver{};                        // the driver's version at that time
  // How long plans have kept this GPU from requests that could start on it (lease/keeping.h).
  std::chrono::milliseconds kept{};
  std::vector<StoredAge> ages{};
  std::optional<StoredBaseline> baseline{};  // empty: never measured
  bool operator==(const StoredGpuState&) const = default;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::vector<StoredLease>> load_leases() = 0;
  virtual Result<void> save_lease(const StoredLease& lease) = 0;  // inserts or replaces
  virtual Result<void> remove_lease(LeaseId id) = 0;
  // Never returns an id twice in the life of the store, not even that of a removed lease.
  virtual Result<LeaseId> next_lease_id() = 0;

  virtual Result<std::vector<StoredRequest>> load_requests() = 0;  // the oldest first
  virtual Result<void> save_request(const StoredRequest& request) = 0;
  virtual Result<void> remove_request(RequestId id) = 0;
  virtual Result<RequestId> next_request_id() = 0;  // as next_lease_id
  // Removes the request and inserts its lease: both or neither.
  virtual Result<void> grant_request(RequestId id, const StoredLease& lease) = 0;

  virtual Result<std::vector<StoredGpuState>> load_gpus() = 0;
  virtual Result<void> save_gpu(const StoredGpuState& gpu) = 0;  // inserts or replaces
};

}  // namespace gpurota::ports
