// Recent use of each user, as the order of the queue counts it (docs/design/fair-share.md). State
// thread only.
//
// The sums are not stored: they are computed once, in pieces, from the usage in the history, and
// from then on updated with the use by leases. Until the sums are complete, the queue is in the
// order of arrival.
#pragma once

#include "config/config.h"
#include "daemon/history/recorder.h"
#include "daemon/leases/queue_order.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

namespace gpurota::daemon {

class FairUse final : public FairShares {
 public:
  // All must outlive the FairUse.
  struct Parts {
    ports::EventLoop& loop;
    ports::Processes& processes;
    Recorder& recorder;
    const config::Config& config;
    UserGroups& groups;
    std::function<WallTime()> wall_clock;
    std::function<void()> on_ready = {};  // the sums are complete
  };
  explicit FairUse(Parts parts) : parts_(std::move(parts)) {}

  // Call after Recorder::start(), and after each change of the configuration.
  void start();
  std::optional<lease::FairShare> share_of(uid_t uid) override;
  // Call before Recorder::on_lease_change().
  void on_lease_change(const LeaseEntry& entry, bool gone);

 private:
  // The settings that the sums depend on.
  struct Basis {
    std::chrono::seconds half_life{};
    bool fillers = false;
    bool operator==(const Basis&) const = default;
  };
  struct Sum {
    double ms = 0;
    // When `ms` was last decayed, by the loop's clock, as the machine's clock may be set.
    TimePoint at{};
  };
  struct Group {
    std::string name;  // empty: the user is in no group with a weight
    TimePoint at{};
  };
  void read_piece();
  void schedule(Duration delay);
  WallTime::duration age_of(const Sum& sum) const;
  void add(const ports::StoredUsage& row);
  bool counts(const ports::StoredUsage& row) const;
  void refresh();
  std::string group_of(uid_t uid);
  int weight_of(uid_t uid) const;

  Parts parts_;
  std::optional<Basis> basis_;  // empty: no use is counted
  WallTime began_{};            // when reading began
  bool ready_ = false;
  std::optional<UsageReader> reader_;
  std::set<LeaseId> open_;      // not ended when reading began: counted when they end
  std::map<uid_t, Sum> ended_;  // the use by leases that have ended
  std::map<uid_t, Group> groups_;
  std::map<uid_t, std::chrono::seconds> used_;
  std::map<std::string, std::chrono::seconds> group_used_;
  std::optional<TimePoint> fresh_;  // when `used_` and `group_used_` were made
  bool complained_ = false;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
