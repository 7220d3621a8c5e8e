#include "daemon/notices/notice_rates.h"

#include "daemon/notices/notice_text.h"

#include <utility>

namespace gpurota::daemon {
namespace {

TokenRate each_hour(int most) { return {most, std::chrono::hours(1)}; }

}  // namespace

void NoticeRates::forget_idle(TimePoint now, int most_per_hour) {
  std::erase_if(entries_, [&](const auto& each) {
    return each.second.kept_back == 0 && each.second.sent.spent(now, each_hour(most_per_hour)) <= 0;
  });
}

NoticeRates::Answer NoticeRates::admit(const Notice& notice, TimePoint now, int most_per_hour) {
  const auto key = std::pair(notice.to, notice.kind);
  if (!entries_.contains(key) && entries_.size() >= kMost) forget_idle(now, most_per_hour);
  if (!entries_.contains(key) && entries_.size() >= kMost) return Answer::kNever;
  Entry& entry = entries_[key];
  if (entry.kept_back == 0 && entry.sent.take(now, each_hour(most_per_hour))) return Answer::kSend;
  ++entry.kept_back;
  entry.last = notice;
  return Answer::kLater;
}

std::vector<Notice> NoticeRates::due(TimePoint now, int most_per_hour) {
  std::vector<Notice> out;
  for (auto& [key, entry] : entries_) {
    if (entry.kept_back == 0 || !entry.sent.take(now, each_hour(most_per_hour))) continue;
    Notice notice = std::move(entry.last);
    if (entry.kept_back > 1) notice.text = merged_text(entry.kept_back, notice.text);
    entry.kept_back = 0;
    out.push_back(std::move(notice));
  }
  return out;
}

std::optional<TimePoint> NoticeRates::next_due(int most_per_hour) const {
  std::optional<TimePoint> next;
  for (const auto& [key, entry] : entries_) {
    if (entry.kept_back == 0) continue;
    const TimePoint when = entry.sent.next(each_hour(most_per_hour));
    if (!next || when < *next) next = when;
  }
  return next;
}

}  // namespace gpurota::daemon
