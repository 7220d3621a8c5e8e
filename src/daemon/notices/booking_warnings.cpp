#include "daemon/notices/booking_warnings.h"

#include "daemon/notices/notice_text.h"

#include <algorithm>
#include <set>

namespace gpurota::daemon {
namespace {

// The GPUs of the lease that are kept for the booking. If none of the lease's GPUs is kept: all
// GPUs of the lease, because the booking may then get any of them instead of the GPUs that are kept
// now.
std::vector<GpuUuid> common_gpus(const Lease& lease, const BookingEntry& booking) {
  std::vector<GpuUuid> common, all;
  for (const GpuUuid& gpu : booking.kept) {
    if (lease.find_gpu(gpu)) common.push_back(gpu);
  }
  for (const LeaseGpu& gpu : lease.gpus) all.push_back(gpu.uuid);
  return common.empty() ? all : common;
}

}  // namespace

void BookingWarnings::restore() {
  for (const BookingEntry& booking : parts_.tables.bookings) {
    told_[booking.id] = parts_.wall_clock();
  }
  arm();
}

void BookingWarnings::on_booking(const BookingNews& news) {
  switch (news.step) {
    case BookingStep::kMade:
      told_[news.booking.id] = parts_.wall_clock();
      break;
    case BookingStep::kBegun:
    case BookingStep::kCancelled:
    case BookingStep::kMissed:
    case BookingStep::kUnused:
      told_.erase(news.booking.id);
      break;
    case BookingStep::kSoon:
    case BookingStep::kMoved:
    case BookingStep::kReady:
    case BookingStep::kTrouble:
      return;
  }
  arm();
}

std::optional<WallTime> BookingWarnings::next_of(const BookingEntry& booking, WallTime told) const {
  std::optional<WallTime> next;
  for (const auto before : parts_.config.notify.before_booking) {
    const WallTime when = booking.begins - before;
    if (when > told && (!next || when < *next)) next = when;
  }
  return next;
}

void BookingWarnings::warn(const BookingEntry& booking, WallTime now) {
  Notice notice{.kind = NoticeKind::kBeginsSoon, .to = booking.asked.uid};
  for (const GpuUuid& gpu : booking.kept) notice.gpus.push_back(parts_.gpus.name_of(gpu));
  notice.text =
      begins_soon_text(booking.id, names_of(booking.kept, parts_.gpus), booking.begins, now);
  parts_.listener.on_notice(notice);
  for (const LeaseId id : parts_.in_the_way(booking)) warn_lease(booking, id, now);
}

void BookingWarnings::warn_lease(const BookingEntry& booking, LeaseId id, WallTime now) {
  const LeaseEntry* const entry = parts_.tables.find(id);
  if (!entry) return;
  const auto common = common_gpus(entry->lease, booking);
  Notice notice{.kind = NoticeKind::kLeavesSoon, .to = entry->lease.uid, .lease = id};
  for (const GpuUuid& gpu : common) notice.gpus.push_back(parts_.gpus.name_of(gpu));
  notice.text = leaves_soon_text(id, names_of(common, parts_.gpus), booking.begins,
                                 parts_.processes.user_name(booking.asked.uid), booking.id, now);
  parts_.owners.tell_owner(id, notice.text);
  parts_.listener.on_notice(notice);
}

void BookingWarnings::warn_in_time() {
  const WallTime now = parts_.wall_clock();
  std::vector<BookingEntry> due;
  for (const BookingEntry& booking : parts_.tables.bookings) {
    WallTime& told = told_[booking.id];
    const auto next = next_of(booking, told);
    if (!next || *next > now) continue;
    told = now;
    // After the beginning of a booking it is too late for a warning.
    if (now < booking.begins) due.push_back(booking);
  }
  for (const BookingEntry& booking : due) warn(booking, now);
  arm();
}

void BookingWarnings::arm() {
  timer_.reset();
  std::optional<WallTime> next;
  for (const BookingEntry& booking : parts_.tables.bookings) {
    const auto told = told_.find(booking.id);
    const auto when = next_of(booking, told == told_.end() ? WallTime() : told->second);
    if (when && (!next || *when < *next)) next = when;
  }
  if (!next) return;
  const Duration left = *next - parts_.wall_clock();
  timer_ = parts_.loop.add_timer(
      parts_.loop.now() +
          std::clamp(left, Duration(std::chrono::milliseconds(1)), ports::kLongestWallWait),
      ports::Urgency::kHousekeeping, [this] {
        const auto this_timer = std::move(timer_);
        warn_in_time();
      });
}

}  // namespace gpurota::daemon
