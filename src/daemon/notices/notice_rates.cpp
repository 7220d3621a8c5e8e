#include "daemon/notices/notice_rates.h"

#include "daemon/notices/notice_text.h"

#include <algorithm>
#include <iterator>

namespace gpurota::daemon {
namespace {

using Hours = std::chrono::duration<double, std::ratio<3600>>;

}  // namespace

void NoticeRates::refill(Bucket& bucket, TimePoint now, int most_per_hour) {
  const double most = most_per_hour;
  bucket.room = std::min(most, bucket.room + Hours(now - bucket.at).count() * most);
  bucket.at = now;
}

void NoticeRates::forget_idle(TimePoint now, int most_per_hour) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    refill(it->second, now, most_per_hour);
    const bool idle = it->second.kept_back == 0 && it->second.room >= most_per_hour;
    it = idle ? buckets_.erase(it) : std::next(it);
  }
}

NoticeRates::Answer NoticeRates::admit(const Notice& notice, TimePoint now, int most_per_hour) {
  const auto key = std::pair(notice.to, notice.kind);
  if (!buckets_.contains(key) && buckets_.size() >= kMost) forget_idle(now, most_per_hour);
  if (!buckets_.contains(key) && buckets_.size() >= kMost) return Answer::kNever;
  const auto [at, added] = buckets_.try_emplace(key);
  Bucket& bucket = at->second;
  if (added) bucket = {.room = static_cast<double>(most_per_hour), .at = now};
  refill(bucket, now, most_per_hour);
  if (bucket.room >= 1 && bucket.kept_back == 0) {
    bucket.room -= 1;
    return Answer::kSend;
  }
  ++bucket.kept_back;
  bucket.last = notice;
  return Answer::kLater;
}

std::vector<Notice> NoticeRates::due(TimePoint now, int most_per_hour) {
  std::vector<Notice> out;
  for (auto& [key, bucket] : buckets_) {
    if (bucket.kept_back == 0) continue;
    refill(bucket, now, most_per_hour);
    if (bucket.room < 1) continue;
    bucket.room -= 1;
    Notice notice = std::move(bucket.last);
    if (bucket.kept_back > 1) notice.text = merged_text(bucket.kept_back, notice.text);
    bucket.kept_back = 0;
    out.push_back(std::move(notice));
  }
  return out;
}

std::optional<TimePoint> NoticeRates::next_due(int most_per_hour) const {
  std::optional<TimePoint> next;
  for (const auto& [key, bucket] : buckets_) {
    if (bucket.kept_back == 0) continue;
    const Hours wait(std::max(0.0, (1 - bucket.room) / most_per_hour));
    // Rounded up: a timer that comes too early would find no room, and come again at once.
    const TimePoint when = bucket.at + std::chrono::ceil<std::chrono::milliseconds>(wait);
    if (!next || when < *next) next = when;
  }
  return next;
}

}  // namespace gpurota::daemon
