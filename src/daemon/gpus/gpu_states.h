// The daemon's own state of each GPU: settings of an administrator, the last users, the cost
// of a context there (all stored), and the memory that was used there without a lease in the last
// sample. State thread only.
#pragma once

#include "base/result.h"
#include "core/lease.h"
#include "core/time.h"
#include "daemon/gpus/gpu_table.h"
#include "ports/store.h"
#include "watch/finding.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class GpuStates {
 public:
  // Both must outlive the GpuStates.
  GpuStates(ports::Store& store, GpuTable& gpus) : store_(store), gpus_(gpus) {}

  // Loads the state that the last daemon stored.
  Result<void> restore();
  // Writes stored state again, to check whether the store has room. Empty: there is nothing to
  // write.
  std::optional<Result<void>> try_store();

  const ports::StoredGpuState& of(const GpuUuid& gpu) const;
  // No new lease gets a draining GPU. Stored.
  Result<void> set_draining(const GpuUuid& gpu, bool draining, const std::string& reason);
  // The settings of an administrator. Stored.
  Result<void> set(const ports::StoredGpuState& state);
  // The memory that a context takes on the GPU with this driver. Stored, if it is new.
  void set_context_cost(const GpuUuid& gpu, Bytes cost, const std::string& driver);
  // How long plans have kept the GPU from requests that could start on it. Stored, if it is new.
  void set_kept(const GpuUuid& gpu, std::chrono::milliseconds kept);
  // Since when the watch has seen each thing that it sees on the GPU now. Stored.
  void set_ages(const GpuUuid& gpu, std::vector<ports::StoredAge> ages);
  // The memory that is normally in use on the GPU and belongs to no process. Stored.
  void set_baseline(const GpuUuid& gpu, ports::StoredBaseline baseline);
  // For each GPU of the lease, records its last user, and that the GPU is idle from now on; ignores
  // fillers. Stored.
  void remember_use(const Lease& lease, WallTime now);
  // The GPUs of the user's latest ended lease, except GPUs where another lease has ended since.
  std::vector<GpuUuid> last_gpus(uid_t uid) const;

  // Memory of a GPU that is used without a lease, in the last sample.
  struct Unreserved {
    Bytes all;  // by processes of no lease, and hidden memory that counts as such use
    std::map<uid_t, Bytes> by_user;
    watch::Hidden hidden{};

    // Hidden memory that is not in `all`.
    Bytes beside() const { return hidden.in_use ? Bytes() : hidden.bytes; }
    bool is_as(const Unreserved& other) const { return all == other.all && hidden == other.hidden; }
  };
  void set_unreserved(const GpuUuid& gpu, Unreserved use) { unreserved_[gpu] = std::move(use); }
  const Unreserved& unreserved(const GpuUuid& gpu) const;

 private:
  // Makes a change and stores it. A failure to store is logged with `what`, which names the change;
  // the change then stays in effect until the daemon ends.
  template <class Change>
  void store_change(const GpuUuid& gpu, const char* what, Change change);

  ports::Store& store_;
  GpuTable& gpus_;
  std::map<GpuUuid, ports::StoredGpuState> states_;
  std::map<GpuUuid, Unreserved> unreserved_;
};

}  // namespace gpurota::daemon
