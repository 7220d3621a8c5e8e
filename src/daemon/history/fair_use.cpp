#include "daemon/history/fair_use.h"

#include "base/log.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

// Rows in a piece: a fraction of a millisecond of the loop.
constexpr std::size_t kRowsAtOnce = 64;
constexpr Duration kReadPause = std::chrono::milliseconds(1);
// The pause when the store cannot be read.
constexpr Duration kReadRetry = std::chrono::seconds(1);
// Use changes each second, the groups of users change rarely.
constexpr Duration kUseFresh = std::chrono::seconds(1);
constexpr Duration kGroupFresh = std::chrono::minutes(10);

}  // namespace

void FairUse::start() {
  groups_.clear();
  fresh_.reset();
  const config::FairShare& rules = parts_.config.fair_share;
  const Basis basis{rules.half_life, parts_.config.filler.count_against_limits};
  if (rules.enabled && basis_ == basis) return;
  basis_.reset();
  ready_ = false;
  reader_.reset();
  timer_.reset();
  open_.clear();
  ended_.clear();
  if (!rules.enabled) return;
  parts_.recorder.store_usage();
  basis_ = basis;
  began_ = parts_.wall_clock();
  for (const ports::StoredUsage& row : parts_.recorder.open_usage()) open_.insert(row.lease);
  reader_.emplace(parts_.recorder.read_usage());
  schedule(kReadPause);
}

void FairUse::schedule(Duration delay) {
  timer_ = parts_.loop.add_timer(parts_.loop.now() + delay, ports::Urgency::kSchedule, [this] {
    const auto running = std::move(timer_);  // keeps this callback alive while it runs
    read_piece();
  });
}

void FairUse::read_piece() {
  const auto rows = reader_->next(kRowsAtOnce);
  if (!rows) {
    if (!complained_) {
      log::warn("usage cannot be read, the queue is in the order of coming until it can",
                {{"error", rows.error().message}});
    }
    complained_ = true;
    return schedule(kReadRetry);
  }
  for (const ports::StoredUsage& row : *rows) {
    // Usage that ends later is counted at its end.
    if (!open_.contains(row.lease) && row.until <= began_) add(row);
  }
  if (!rows->empty()) return schedule(kReadPause);
  complained_ = false;
  reader_.reset();
  open_.clear();
  ready_ = true;
  fresh_.reset();
  if (parts_.on_ready) parts_.on_ready();
}

bool FairUse::counts(const ports::StoredUsage& row) const {
  return basis_->fillers || row.kind != to_string(LeaseKind::kFiller);
}

WallTime::duration FairUse::age_of(const Sum& sum) const {
  return std::chrono::duration_cast<WallTime::duration>(parts_.loop.now() - sum.at);
}

void FairUse::add(const ports::StoredUsage& row) {
  if (!counts(row)) return;
  Sum& sum = ended_[row.uid];
  sum.ms = lease::decayed(sum.ms, age_of(sum), basis_->half_life) +
           lease::decayed(static_cast<double>(row.gpu_ms), row.since, row.until,
                          parts_.wall_clock(), basis_->half_life);
  sum.at = parts_.loop.now();
}

void FairUse::on_lease_change(const LeaseEntry& entry, bool gone) {
  if (!gone || !basis_) return;
  for (const ports::StoredUsage& row : parts_.recorder.open_usage()) {
    if (row.lease == entry.lease.id) add(row);
  }
  fresh_.reset();
}

std::string FairUse::group_of(uid_t uid) {
  const auto& named = parts_.config.fair_share.groups;
  if (named.empty()) return {};
  Group& group = groups_[uid];
  if (group.at != TimePoint() && parts_.loop.now() - group.at < kGroupFresh) return group.name;
  const auto names = parts_.groups.group_names(uid);
  if (!names) return group.name;  // the account database is being asked
  const auto found = std::find_if(names->begin(), names->end(),
                                  [&](const auto& name) { return named.contains(name); });
  group = {found == names->end() ? std::string() : *found, parts_.loop.now()};
  return group.name;
}

int FairUse::weight_of(uid_t uid) const {
  const auto& named = parts_.config.fair_share.users;
  if (named.empty()) return 1;
  auto found = named.find(parts_.processes.user_name(uid));
  if (found == named.end()) found = named.find(std::to_string(uid));
  return found == named.end() ? 1 : found->second.weight;
}

void FairUse::refresh() {
  if (fresh_ && parts_.loop.now() - *fresh_ < kUseFresh) return;
  const WallTime now = parts_.wall_clock();
  std::map<uid_t, double> used;
  for (const auto& [uid, sum] : ended_) {
    used[uid] = lease::decayed(sum.ms, age_of(sum), basis_->half_life);
  }
  for (const ports::StoredUsage& row : parts_.recorder.open_usage()) {
    if (!counts(row)) continue;
    used[row.uid] += lease::decayed(static_cast<double>(row.gpu_ms), row.since, row.until, now,
                                    basis_->half_life);
  }
  used_.clear();
  group_used_.clear();
  for (const auto& [uid, ms] : used) {
    used_[uid] = std::chrono::seconds(static_cast<std::int64_t>(ms / 1000));
    if (const std::string group = group_of(uid); !group.empty()) group_used_[group] += used_[uid];
  }
  fresh_ = parts_.loop.now();
}

std::optional<lease::FairShare> FairUse::share_of(uid_t uid) {
  if (!ready_) return std::nullopt;
  refresh();
  lease::FairShare share;
  const auto used = used_.find(uid);
  if (used != used_.end()) share.used = used->second;
  share.weight = weight_of(uid);
  share.group = group_of(uid);
  if (share.group.empty()) return share;
  const auto together = group_used_.find(share.group);
  if (together != group_used_.end()) share.group_used = together->second;
  share.group_weight = parts_.config.fair_share.groups.at(share.group).weight;
  return share;
}

}  // namespace gpurota::daemon
