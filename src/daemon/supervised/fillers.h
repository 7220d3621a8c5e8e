// The fillers: programs that use GPUs which nobody needs, a policy over the supervisor, which runs
// them. When one may be on a GPU, and which, is decided by src/filler; here it is carried out.
// State thread only.
//
// A filler on a GPU is a run of `gpurota run --filler` as its owner: a lease of kind filler, one to a GPU. It leaves when
//   somebody's turn for the GPU has come: the queue ends its lease, or tells us to move it out, and the
//     newcomer is served when the driver counts no memory of it any more (lease_manager.cpp);
//   anything else is on the GPU: seen within kSampleEvery, and then it leaves by our own order;
//   it is paused or removed.
// One whose owner wants it so has a swap lease, and leaves by being put aside: its memory goes to host memory, and
// comes back when nobody needs the GPU (filler_moves.h). Where that cannot be it ends.
// Keepers and leases outlive the daemon; the next one finds both (filler_adoption.h).
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
  // Of one user.
  static constexpr std::size_t kMostFillers = 32;

  using Parts = FillerParts;

  explicit Fillers(Parts parts);

  // After the leases; when the sockets are open.
  Result<void> restore();

  Result<const FillerEntry*> add(uid_t uid, jobs::JobSpec spec, FillerWishes wishes);
  enum class What { kPause, kResume, kRemove };
  // `by`: who does it, where that is not the owner: "by root (administrator)".
  Result<void> control(std::uint64_t id, What what, const std::string& by = {});
  // What could not be stored (the disk was full) is, if it can be now.
  void store_again() { table_.supervisor.store_again(); }
  // The folder of the log on each of its GPUs, for keeper::read_log().
  struct Log {
    std::string gpu;  // its name
    std::string folder;
  };
  std::vector<Log> logs(std::uint64_t id) const;

  // What a good look shows; `foreign`: something there is in no lease and does count. `used`: by
  // leases.
  void on_sample(const GpuUuid& gpu, bool foreign, const std::map<LeaseId, Bytes>& used);
  // The GPU is in error.
  void on_failed_sample(const GpuUuid& gpu);
  // Which processes compute there now: an unknown one is looked at.
  void on_polled(const GpuUuid& gpu, const std::vector<pid_t>& pids);
  void on_lease_change(const LeaseEntry& entry, bool gone);
  void on_turns_change() { moves_.look_at_evictions(); }

  // Somebody needs the GPU of this filler, and fits beside what stays of it.
  void move_out(LeaseId lease, const std::string& why);
  std::optional<LeaseStay> stay_of(LeaseId lease) const { return moves_.stay_of(lease); }
  // A look at this GPU is all that an eviction waits for.
  bool expects_sample(const GpuUuid& gpu) const { return moves_.expects_sample(gpu); }

  // Takes the filler off the GPU: moves it out where its owner wants that and it can be, ends it
  // else.
  void yield(const GpuUuid& gpu, const std::string& reason);
  // Takes the filler off the GPU by ending it.
  void leave(const GpuUuid& gpu, const std::string& reason);

  // From TERM to KILL of a lease of kind filler.
  std::optional<Duration> grace_of(const LeaseEntry& entry) const;
  // Whether a filler may go on this GPU some day, so that it is looked at often enough.
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
  // Whether there may be the output of one more place.
  Result<void> check_log(uid_t uid) const;

  FillerTable table_;
  FillerMoves moves_{table_, *this};
  FillerChoice choice_{table_};
};

}  // namespace gpurota::daemon
