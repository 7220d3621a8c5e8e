// Compares leases with what is really on the GPUs. Pure: readings in, steps out.
//
// Used by the daemon on its state thread, after every reading of a GPU. A finding begins at the
// first reading that shows it and ends when it has not been seen for a while, so that a finding
// that comes and goes is reported once. Nothing is stopped because of a single reading. A process
// within a lease is never stopped while the lease is within its limit, unless libgpurota is loaded
// in the process and does not enforce the limit.
#pragma once

#include "watch/ages.h"
#include "watch/finding.h"

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace gpurota::watch {

class Watcher {
 public:
  // Call after each reading. A GPU that did not answer has no reading: nothing begins or ends then.
  std::vector<Step> decide(const Reading& reading, const Policy& policy, TimePoint now);

  // Findings that have not ended, in the order in which they began. A finding that the last
  // readings did not show is included until it ends.
  std::vector<Finding> open() const { return findings(false); }
  // The open findings that the last reading of the GPU showed, for display together with the rest
  // of that reading.
  std::vector<Finding> seen() const { return findings(true); }
  bool has_open(const GpuUuid& gpu) const;

  // Uses without a lease, and unused leases, for the next daemon.
  std::vector<Age> ages(TimePoint now) const;
  // Takes over the ages that the last daemon knew. Call before the first reading.
  void restore(std::vector<Age> ages, TimePoint now);

 private:
  using Key = std::tuple<GpuUuid, FindingKind, std::optional<uid_t>, std::optional<LeaseId>>;
  struct Open {
    Finding finding;
    TimePoint last_seen{};
    int readings = 0;
    bool seen = false;                                          // at the last reading
    std::map<std::pair<pid_t, std::uint64_t>, TimePoint> told;  // when asked to end
    std::set<std::pair<pid_t, std::uint64_t>> killed;
    std::vector<SeenProcess> targets;  // as of the last reading
    bool released = false;
  };
  // A finding of one reading, before it is compared with the open findings.
  struct Candidate {
    Finding finding;
    std::vector<SeenProcess> targets;
  };
  using Candidates = std::map<Key, Candidate>;

  struct Strays {
    std::vector<SeenProcess> unreserved;
    std::vector<SeenProcess> foreign;
  };
  Strays sort_out(const Reading& reading, const Policy& policy, TimePoint now);
  void add_unreserved(const Reading& reading, const Policy& policy,
                      const std::vector<SeenProcess>& processes, Candidates& out) const;
  void add_foreign(const Reading& reading, const Policy& policy,
                   const std::vector<SeenProcess>& processes, Candidates& out) const;
  void add_over_limit(const Reading& reading, const Policy& policy, Candidates& out) const;
  void add_not_limited(const Reading& reading, const Policy& policy, TimePoint now,
                       Candidates& out);
  void add_unused(const Reading& reading, const Policy& policy, TimePoint now, Candidates& out);
  bool is_open(const Key& key) const { return open_.contains(key); }

  void merge(const Reading& reading, const Policy& policy, Candidates found, TimePoint now,
             std::vector<Step>& steps);
  std::vector<Finding> findings(bool seen_only) const;
  // Since when the last daemon saw this; each age is used once.
  std::optional<TimePoint> take_restored(const Age& like, const std::vector<SeenProcess>& processes,
                                         TimePoint now);
  void stop(Open& open, const Policy& policy, TimePoint now, std::vector<Step>& steps);
  void release_unused(const Reading& reading, const Policy& policy, TimePoint now,
                      std::vector<Step>& steps);

  std::map<Key, Open> open_;
  std::map<std::pair<GpuUuid, pid_t>, TimePoint> gone_since_;
  std::map<std::tuple<GpuUuid, pid_t, std::uint64_t>, TimePoint> silent_since_;
  std::map<std::pair<LeaseId, GpuUuid>, TimePoint> last_use_;
  std::vector<Age> restored_;
  TimePoint restored_at_{};
  std::uint64_t last_id_ = 0;
};

}  // namespace gpurota::watch
