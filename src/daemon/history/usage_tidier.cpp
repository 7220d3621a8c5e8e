#include "daemon/history/usage_tidier.h"

#include "base/log.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace gpurota::daemon {
namespace {

using std::chrono::hours;

constexpr std::array<WallTime::duration, 3> kSpans = {hours(1), hours(24), hours(24 * 30)};
// Rows in a piece: a fraction of a millisecond of the loop.
constexpr std::size_t kPiece = 64;
constexpr Duration kPause = std::chrono::milliseconds(10);
// The pause when the store cannot be used.
constexpr Duration kRetry = std::chrono::seconds(1);
// Once rows must be merged, merging continues until 1/kRoomPart of the bound is free.
constexpr std::size_t kRoomPart = 8;

}  // namespace

std::size_t UsageTidier::bound() const {
  return static_cast<std::size_t>(parts_.config.max_usage_rows_per_user);
}

void UsageTidier::on_row(uid_t uid) {
  const auto [at, is_new] = rows_.try_emplace(uid, 0);
  ++at->second;
  if (!is_new && at->second <= bound()) return;
  waiting_.try_emplace(uid);
  schedule(kPause);
}

void UsageTidier::forget(WallTime before) {
  forget_ = before;
  schedule(kPause);
}

void UsageTidier::schedule(Duration delay) {
  if (timer_) return;
  timer_ = parts_.loop.add_timer(parts_.loop.now() + delay, ports::Urgency::kHousekeeping,
                                 [this] { go_on(); });
}

void UsageTidier::go_on() {
  timer_.reset();
  const auto done = do_piece();
  const bool busy = !done && done.error().code == Code::kUnavailable;
  if (!done && !busy && !complained_) {
    log::warn("old usage cannot be tidied up, trying again", {{"error", done.error().message}});
  }
  complained_ = !done && (!busy || complained_);
  if (!is_idle()) schedule(done ? kPause : kRetry);
}

Result<void> UsageTidier::do_piece() {
  if (forget_) {
    GPUROTA_ASSIGN_OR_RETURN(const bool more, parts_.history.prune_usage(*forget_, kPiece));
    if (!more) forget_.reset();
    return {};
  }
  if (waiting_.empty()) return {};
  auto& [uid, merging] = *waiting_.begin();
  if (merging.rows > 0) return merge(uid, merging);
  GPUROTA_ASSIGN_OR_RETURN(merging.rows, parts_.history.count_usage(uid));
  if (merging.rows <= bound()) done(uid, merging.rows);
  return {};
}

Result<void> UsageTidier::merge(uid_t uid, Merging& merging) {
  GPUROTA_ASSIGN_OR_RETURN(const ports::MergedUsage merged,
                           parts_.history.merge_usage({uid, kSpans[merging.span], merging.after,
                                                       kPiece, parts_.readers()}));
  merging.rows -= std::min(merging.rows, merged.fewer);
  const std::size_t wanted = bound() - bound() / kRoomPart;
  if (merging.rows <= wanted) {
    done(uid, merging.rows);
    return {};
  }
  // As long as merging reduces the number of rows, continue at the same place: the next rows are
  // merged with the row that was just made.
  if (merged.fewer > 0) return {};
  merging.after = merged.upto;
  if (!merged.over) return {};
  merging.after = {};
  // Nothing more can be merged: try again after some more rows.
  if (++merging.span == kSpans.size()) done(uid, wanted);
  return {};
}

void UsageTidier::done(uid_t uid, std::size_t rows) {
  rows_[uid] = rows;
  waiting_.erase(uid);
}

}  // namespace gpurota::daemon
