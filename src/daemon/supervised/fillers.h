// The fillers: programs that use GPUs which nobody needs. Fillers are a policy over the supervisor,
// which runs them. src/filler decides which filler may be on a GPU, and when; this class carries
// the decisions out. State thread only.
//
// A filler on a GPU is a run of `gpurota run --filler` as its owner. Each run has a lease of kind
// filler on one GPU. The filler leaves
//   - when somebody's turn for the GPU has come: the queue ends its lease, or has the filler moved
//     out, and serves the newcomer when the driver counts no memory of the filler any more
//     (lease_manager.cpp);
//   - when anything else is on the GPU, which is seen within kSampleEvery: this class makes the
//     filler leave;
//   - when the filler is paused or removed.
// If its owner wants that, a filler has a swap lease and is moved out instead of ended: its memory
// goes to host memory, and comes back when nobody needs the GPU (filler_moves.h). If a move is not
// possible, the filler is ended.
// Keepers and leases outlive the daemon; the next daemon finds both (filler_adoption.h).
#pragma once

#include "daemon/supervised/filler_choice.h"
#include "daemon/supervised/filler_moves.h"
#include "watch/finding.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::daemon {

class Fillers final : Supervisor::Policy {
 public:
  // The most fillers of one user.
  static constexpr std::size_t kMostFillers = 32;

  using Parts = FillerParts;

  explicit Fillers(Parts parts);

  // Call when the sockets are open, after the leases have been restored.
  Result<void> restore();

  Result<const FillerEntry*> add(uid_t uid, jobs::JobSpec spec, FillerWishes wishes);
  enum class What { kPause, kResume, kRemove };
  // `by`: the user who does this, if it is not the owner: "by root (administrator)".
  Result<void> control(std::uint64_t id, What what, const std::string& by = {});
  // Stores again, if possible, what could not be stored because the disk was full.
  void store_again() { table_.supervisor.store_again(); }
  // The filler has a log for each GPU where it has been. `folder` is for keeper::read_log().
  struct Log {
    std::string gpu;  // its name
    std::string folder;
  };
  std::vector<Log> logs(std::uint64_t id) const;

  // A sample of the GPU has succeeded. `foreign`: the GPU is used outside leases by processes that
  // are not ignored. `used`: the memory that each lease uses.
  void on_sample(const GpuUuid& gpu, bool foreign, const std::map<LeaseId, Bytes>& used);
  // A sample of the GPU has failed: the GPU is in error.
  void on_failed_sample(const GpuUuid& gpu);
  // The processes that compute on the GPU now. An unknown process leads to a sample.
  void on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids);
  void on_lease_change(const LeaseEntry& entry, bool gone);
  void on_turns_change() { moves_.check_evictions(); }

  // Moves the filler of this lease out for a request that needs its GPU and fits beside the memory
  // that stays.
  void move_out(LeaseId lease, const std::string& why);
  std::optional<LeaseStay> stay_of(LeaseId lease) const { return moves_.stay_of(lease); }
  // Whether an eviction on this GPU waits only for a sample of the GPU.
  bool expects_sample(const GpuUuid& gpu) const { return moves_.expects_sample(gpu); }

  // Takes the filler off the GPU: moves the filler out if its owner wants that and it is possible,
  // else ends it.
  void yield(const GpuUuid& gpu, const std::string& reason);
  // Takes the filler off the GPU by ending it.
  void leave(const GpuUuid& gpu, const std::string& reason);

  // The time from TERM to KILL for a lease of kind filler.
  std::optional<Duration> grace_of(const LeaseEntry& entry) const;
  // Whether some filler may use this GPU at some time, so that the GPU must be sampled often
  // enough.
  bool is_of_interest(const GpuUuid& gpu) const;

  const std::map<std::uint64_t, FillerEntry>& entries() const { return table_.entries; }
  const std::map<GpuUuid, FillerSpot>& spots() const { return table_.spots; }
  WallTime wall_time(TimePoint when) const { return table_.wall_time(when); }

 private:
  void on_handed_over(std::uint64_t run) override;
  void on_over(std::uint64_t run) override;
  Result<void> store(std::uint64_t id) override;

  void evaluate(const GpuUuid& gpu, const filler::Sight& sight);
  filler::Sight sight_of(const GpuUuid& gpu, bool foreign) const;
  void start_one(const GpuUuid& gpu);
  Result<void> launch(FillerEntry& entry, const GpuUuid& gpu);
  Result<std::uint64_t> run_on(FillerEntry& entry, const GpuUuid& gpu);
  void ended_by_itself(FillerEntry& entry, const GpuUuid& gpu);
  void settle_spot(const GpuUuid& gpu);
  Result<void> check_new(uid_t uid, const jobs::JobSpec& spec) const;
  // Whether the budget of the user has room for the log of one more GPU.
  Result<void> check_log(uid_t uid) const;

  FillerTable table_;
  FillerMoves moves_{table_, *this};
  FillerChoice choice_{table_};
};

}  // namespace gpurota::daemon
