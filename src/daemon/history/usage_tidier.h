// Keeps the rows of usage in the store within bounds. Rows that are too old are removed. The oldest
// rows of a user with too many rows (max_usage_rows_per_user) are merged by hour, then by day, then
// by thirty days, so that sums stay right. Works in pieces, so that nobody waits for it. For the
// recorder; state thread only.
#pragma once

#include "config/config.h"
#include "ports/event_loop.h"
#include "ports/history.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

class UsageTidier {
 public:
  struct Parts {
    ports::EventLoop& loop;
    ports::History& history;
    const config::Config& config;
    // The last lease that each reader of usage has read.
    std::function<std::vector<LeaseId>()> readers;
  };
  explicit UsageTidier(Parts parts) : parts_(std::move(parts)) {}

  // Call when a row of this user has been stored for the last time, as its usage has ended.
  void on_row(uid_t uid);
  // Removes usage that ended before `before`.
  void forget(WallTime before);
  bool is_idle() const { return !forget_ && waiting_.empty(); }

 private:
  // A user who may have too many rows.
  struct Merging {
    std::size_t rows = 0;  // 0: not counted yet
    std::size_t span = 0;  // index
    LeaseId after{};
  };
  void schedule(Duration delay);
  void go_on();
  Result<void> do_piece();
  Result<void> merge(uid_t uid, Merging& merging);
  void done(uid_t uid, std::size_t rows);
  std::size_t bound() const;

  Parts parts_;
  std::map<uid_t, std::size_t> rows_;  // upper bounds, for users seen since the start
  std::map<uid_t, Merging> waiting_;
  std::optional<WallTime> forget_;
  bool complained_ = false;
  ports::EventLoop::SourcePtr timer_;
};

}  // namespace gpurota::daemon
