// The thread that opens and closes the windows of compute time (sched/compute_windows.h) by writing
// into the pages of tenants (abi/page.h). The windows are too short for the state thread, which may
// be busy for tens of milliseconds.
//
// The state thread says which tenants belong to which party and lease. The functions may be called
// by any thread.
#pragma once

#include "abi/page.h"
#include "base/result.h"
#include "core/gpu.h"
#include "core/time.h"
#include "daemon/tenants/compute_uses.h"
#include "sched/compute_windows.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace gpurota::daemon {

class ComputeDivider {
 public:
  // An odd word `work` that has not changed for this long does not count as work until it changes:
  // libraries change it at least every 10 ms while their program submits.
  static constexpr Duration kStale = std::chrono::seconds(2);

  struct Process {
    LeaseId lease;
    gpurota_page* page = nullptr;
  };
  // One party of a GPU. Its tenants all have one GPU, in slot 0.
  struct Party {
    sched::ComputeWindows::Party terms;
    std::vector<Process> processes;
  };
  using Gpus = std::map<GpuUuid, std::vector<Party>>;

  ComputeDivider() = default;
  ~ComputeDivider();
  ComputeDivider(const ComputeDivider&) = delete;
  ComputeDivider& operator=(const ComputeDivider&) = delete;

  // Replaces all parties. The pages must stay valid until they are no longer named. The windows of
  // pages that are no longer named are opened. Starts the thread when it is first needed; an error
  // means that no thread could be started, and all windows are open.
  Result<void> set(Gpus gpus);
  // The last minute of the lease's work; nothing: the lease is in no party.
  std::optional<LastMinute> last_minute(LeaseId lease) const;
  // Opens and closes windows, for the thread. Returns when the thread is to call step() again at
  // the latest; nothing: after the next set().
  std::optional<TimePoint> step(TimePoint now);

 private:
  struct Gpu {
    sched::ComputeWindows windows;
    std::vector<Party> parties;
    ComputeUses uses;
    TimePoint refreshed{};  // when closed windows last changed
  };

  // The books of a lease's upper bound from when the lease was last a party.
  struct Kept {
    sched::ComputeBound bound;
    TimePoint since;

    // The books now, if the lease has had no work since.
    sched::ComputeBound at(TimePoint now) const;
  };

  void run();
  void keep_bounds(TimePoint now);
  void restore_bounds(TimePoint now);
  // The last value of a page's `work`, and since when it is that.
  struct Seen {
    std::uint32_t word = 0;
    TimePoint since;
  };

  std::vector<ComputeUses::Processes> read(const Gpu& gpu, TimePoint now);
  static void show(Gpu& gpu, TimePoint now);

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<GpuUuid, Gpu> gpus_;
  std::map<const gpurota_page*, Seen> seen_;  // of the pages of all parties
  std::map<std::uint64_t, Kept> kept_;        // by party; of leases that are no parties now
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gpurota::daemon
