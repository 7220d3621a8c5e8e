// The fillers: programs that use GPUs which nobody needs, a policy over the supervisor, which runs them. When one may be
// on a GPU, and which, is decided by src/filler; here it is carried out. State thread only.
//
// A filler on a GPU is a run of `gpurota run --filler` as its owner: a lease of kind filler, one to a GPU. It leaves when
//   somebody's turn for the GPU has come: the queue ends its lease, or tells us to move it out, and the
//     newcomer is served when the driver counts no memory of it any more (lease_manager.cpp);
//   anything else is on the GPU: seen within kSampleEvery, and then it leaves by our own order;
//   it is paused or removed.
// One whose owner wants it so has a swap lease, and leaves by being put aside: its memory goes to host memory, and
// comes back when nobody needs the GPU (fillers_moved.cpp). Where that cannot be it ends.
// Keepers and leases outlive the daemon; the next one finds both (fillers_control.cpp).
#pragma once

#include "daemon/gpus/gpu_table.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/availability.h"
#include "daemon/leases/lease_manager.h"
#include "daemon/leases/queue.h"
#include "daemon/supervised/supervisor.h"
#include "daemon/tenants/turn_keeper.h"
#include "filler/choice.h"
#include "filler/turn_taking.h"
#include "filler/yielding.h"
#include "watch/finding.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

// What its owner said of it, beside the command.
struct FillerWishes {
  std::vector<GpuUuid> gpus;     // empty: all
  std::optional<int> instances;  // empty: one on each idle GPU
  std::optional<SizeSpec> memory;
  std::optional<int> of_free{};  // per cent of what is free when it starts, instead of `memory`
  std::chrono::milliseconds idle_after{30000};
  std::chrono::milliseconds grace{2000};
  filler::OnYield on_yield = filler::OnYield::kStop;

  bool may_use(const GpuUuid& gpu) const;
  // Its limit on a GPU of which so much can be had; nothing: the whole GPU.
  std::optional<SizeSpec> memory_of(const lease::Available& available) const;
};

struct FillerEntry : Supervised {
  FillerWishes wishes;
  bool paused = false;
  bool removed = false;         // goes as soon as it is on no GPU any more
  std::vector<GpuUuid> places;  // where it has ever been: their positions number its runs
  int failures = 0;             // soon or badly ended by itself, in a row
  std::optional<TimePoint> retry_at;
  std::string problem;    // how it last ended by itself, if not well
  TimePoint failed_at{};  // then
  TimePoint last_start = TimePoint::min();

  bool is_removed() const { return removed; }
};

// One GPU.
struct FillerSpot {
  filler::TurnTaking turns{filler::Rules{}};
  std::optional<std::uint64_t> filler;  // which is on, or on its way out
  std::uint64_t run = 0;                // of it here
  std::optional<LeaseId> lease;         // of it, until the memory is back
  TimePoint since{};
  Duration stayed{};  // until it was last moved out for somebody
  // And since: it is on, or its owner has paused it. Empty: it is out for somebody.
  std::optional<TimePoint> stays_from;
  ports::EventLoop::SourcePtr kill_timer;
  bool told_to_end = false;
  bool may_lack_lease = false;  // an earlier daemon started it, and no lease of it is known
  std::optional<filler::Eviction> eviction;  // it is being moved out
  bool moved_out = false;                    // it is out
  Bytes stays;                               // of what is out, on the GPU
  std::optional<Bytes> counted;              // of its lease there, by the last look
  ports::EventLoop::SourcePtr look_timer;    // of the eviction

  // It is out for somebody from now on.
  void stop_stay(TimePoint now) {
    if (stays_from) stayed += now - *stays_from;
    stays_from.reset();
  }
};

class Fillers final : public LeaseListener,
                      public MovableFillers,
                      public TurnListener,
                      Supervisor::Policy {
 public:
  // Of one user.
  static constexpr std::size_t kMostFillers = 32;

  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    Supervisor::Parts supervisor;
    const config::Config& config;
    const GpuTable& gpus;
    LeaseManager& leases;
    TurnKeeper& turns;
    Recorder& recorder;
    Queue& queue;
    const GpuStates& states;
    const Availability& availability;
    Samples& samples;
    std::function<WallTime()> wall_clock;
    std::string directory;  // of their files
  };

  explicit Fillers(Parts parts);

  // After the leases; when the sockets are open.
  Result<void> restore();

  Result<const FillerEntry*> add(uid_t uid, jobs::JobSpec spec, FillerWishes wishes);
  enum class What { kPause, kResume, kRemove };
  Result<void> control(std::uint64_t id, What what);
  // What could not be stored (the disk was full) is, if it can be now.
  void store_again() { supervisor_.store_again(); }
  // At most so many bytes of each GPU's, with a line above each if there are several.
  Result<std::string> read_log(std::uint64_t id, std::size_t most) const;

  // What a good look shows; `foreign`: something there is in no lease and does count. `used`: by leases.
  void on_look(const GpuUuid& gpu, bool foreign, const std::map<LeaseId, Bytes>& used);
  // The GPU is in error.
  void on_failed_look(const GpuUuid& gpu);
  // Which processes compute there now: an unknown one is looked at.
  void on_glimpse(const GpuUuid& gpu, const std::vector<pid_t>& pids);
  void on_lease_change(const LeaseEntry& entry, bool gone) override;
  void on_turns_change() override { look_at_evictions(); }

  // Somebody needs the GPU of this filler, and fits beside what stays of it.
  void move_out(LeaseId lease, const std::string& why) override;
  std::optional<Stay> stay_of(LeaseId lease) const override;
  // A look at this GPU is all that an eviction waits for.
  bool expects_look(const GpuUuid& gpu) const;

  // From TERM to KILL of a lease of kind filler.
  std::optional<Duration> grace_of(const LeaseEntry& entry) const override;
  // Whether a filler may go on this GPU some day, so that it is looked at often enough.
  bool is_of_interest(const GpuUuid& gpu) const;

  const std::map<std::uint64_t, FillerEntry>& entries() const { return entries_; }
  const std::map<GpuUuid, FillerSpot>& spots() const { return spots_; }
  WallTime wall_time(TimePoint when) const;

 private:
  void on_handed_over(std::uint64_t run) override;
  void on_over(std::uint64_t run) override;
  Result<void> store(std::uint64_t id) override;
  void evaluate(const GpuUuid& gpu, const filler::Sight& sight);
  // It has been there for long enough, and another one waits for the GPU.
  bool stay_is_over(const GpuUuid& gpu) const;
  struct Candidates {
    std::vector<filler::Candidate> list;
    std::vector<std::uint64_t> ids;
  };
  Candidates candidates() const;
  filler::Sight sight_of(const GpuUuid& gpu, bool foreign) const;
  filler::Rules rules_for(const GpuUuid& gpu) const;
  void start_one(const GpuUuid& gpu);
  Result<void> launch(FillerEntry& entry, const GpuUuid& gpu);
  // It has to leave: how, its owner and what is possible say.
  void yield(const GpuUuid& gpu, const std::string& reason);
  void leave(const GpuUuid& gpu, const std::string& reason);
  void evict(const GpuUuid& gpu);
  void step_eviction(const GpuUuid& gpu);
  void finish_eviction(const GpuUuid& gpu);
  void bring_back(const GpuUuid& gpu);
  filler::WayOut way_out_of(const GpuUuid& gpu) const;
  filler::Eviction::Sight eviction_sight(const GpuUuid& gpu) const;
  void look_at_evictions();
  // Whether it has its lease, and that can be put aside.
  const LeaseEntry* swap_lease_of(const FillerSpot& spot) const;
  void ended_by_itself(FillerEntry& entry, const GpuUuid& gpu);
  void settle_spot(const GpuUuid& gpu);
  // Somewhere; or its memory is not back yet.
  bool is_on(const FillerEntry& entry) const;
  bool is_kept_by(const LeaseEntry& lease, const FillerSpot& spot) const;
  Result<void> take_up(const ports::StoredFiller& stored);
  Result<void> find_running(FillerEntry& entry, const std::vector<GpuUuid>& out);
  void take_up_lease(FillerEntry& entry, const GpuUuid& gpu, bool was_out);
  Result<void> check_new(uid_t uid, const jobs::JobSpec& spec) const;
  // Whether there may be the output of one more place; and counts those there are, one at the least.
  Result<void> check_log(uid_t uid) const;
  void count_logs(FillerEntry& entry);
  Result<void> save(const FillerEntry& entry) const;
  void record(proto::EventType type, const FillerEntry& entry, const GpuUuid& gpu,
              const std::string& what);
  std::string gpu_name(const GpuUuid& gpu) const;
  // The run of a filler on one GPU.
  static constexpr std::size_t kMostPlaces = 1024;
  static std::uint64_t run_at(const FillerEntry& entry, std::size_t place);
  Result<std::uint64_t> run_on(FillerEntry& entry, const GpuUuid& gpu);
  const GpuUuid& gpu_of(std::uint64_t run) const;

  Parts parts_;
  Supervisor supervisor_;
  std::map<std::uint64_t, FillerEntry> entries_;
  std::map<GpuUuid, FillerSpot> spots_;
  bool looking_ = false;  // look_at_evictions() is about to run
};

}  // namespace gpurota::daemon
