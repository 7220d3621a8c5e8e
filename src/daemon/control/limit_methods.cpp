#include "daemon/control/limit_methods.h"

#include "daemon/control/calls.h"
#include "daemon/leases/bookings.h"
#include "proto/codec.h"

#include <climits>

namespace gpurota::daemon {
namespace {

using Name = proto::UserLimitName;
using Value = std::optional<std::int64_t>;

// Null means: no limit.
Value value_of(std::optional<int> limit) {
  return !limit || *limit == UserLimits::kUnlimited ? Value() : Value(*limit);
}
Value value_of(std::optional<Bytes> limit) {
  const bool none = !limit || limit->count() > static_cast<std::uint64_t>(INT64_MAX);
  return none ? Value() : Value(static_cast<std::int64_t>(limit->count()));
}
Value value_of(std::optional<std::chrono::seconds> limit) {
  return !limit || *limit == UserLimits::kUnlimitedTime ? Value() : Value(limit->count());
}

proto::LimitOrigin origin_of(lease::LimitOrigin::Rule rule) {
  switch (rule) {
    case lease::LimitOrigin::Rule::kDefault:
      return proto::LimitOrigin::kDefault;
    case lease::LimitOrigin::Rule::kEveryone:
      return proto::LimitOrigin::kEveryone;
    case lease::LimitOrigin::Rule::kGroup:
      return proto::LimitOrigin::kGroup;
    case lease::LimitOrigin::Rule::kUser:
      return proto::LimitOrigin::kUser;
  }
  return proto::LimitOrigin::kUnknown;
}

proto::UserLimit shown(Name name, Value most, Value used, const lease::LimitOrigin& origin) {
  proto::UserLimit limit;
  limit.name = name;
  limit.most = most;
  limit.used = used;
  limit.origin = origin_of(origin.rule);
  if (origin.rule == lease::LimitOrigin::Rule::kGroup)
    limit.group_id = static_cast<int>(origin.group);
  return limit;
}

std::vector<proto::UserLimit> limits_of(const Allowances::Standing& standing,
                                        std::int64_t most_leases, std::int64_t booked) {
  const UserLimits& limits = standing.limits;
  const lease::LimitOrigins& from = standing.origins;
  const lease::Holding& held = standing.held;
  constexpr std::int64_t kSecondsPerHour = 3600;
  Value hours = value_of(limits.hours);
  if (hours) *hours *= kSecondsPerHour;
  const auto time = held.gpu_time + held.promised;
  proto::UserLimit leases;
  leases.name = Name::kLeases;
  leases.most = most_leases;
  leases.used = standing.leases;
  leases.origin = proto::LimitOrigin::kSite;
  std::vector<proto::UserLimit> all = {
      shown(Name::kGpus, value_of(limits.gpus), held.gpus, from.gpus),
      shown(Name::kMemory, value_of(limits.memory), value_of(std::optional(held.memory)),
            from.memory),
      shown(Name::kHours, hours, time.count(), from.hours),
      shown(Name::kDuration, value_of(limits.duration), {}, from.duration),
      shown(Name::kWaiting, value_of(limits.waiting), held.waiting, from.waiting),
      leases,
      shown(Name::kBookings, value_of(limits.bookings), booked, from.bookings),
      shown(Name::kBookAhead, value_of(limits.book_ahead), {}, from.book_ahead),
      shown(Name::kPriority, value_of(limits.priority), {}, from.priority),
      shown(Name::kWeight, value_of(limits.weight), {}, from.weight),
      shown(Name::kPinned, value_of(limits.pinned), {}, from.pinned)};
  all.push_back(
      shown(Name::kInteractive, limits.interactive.value_or(true) ? 1 : 0, {}, from.interactive));
  all.push_back(shown(Name::kCompute, value_of(limits.compute), {}, from.compute));
  return all;
}

proto::UserLimit booking_bound(Name name, std::chrono::seconds most, bool bounded,
                               std::optional<std::chrono::seconds> used) {
  proto::UserLimit limit;
  limit.name = name;
  if (bounded) limit.most = most.count();
  if (used) limit.used = used->count();
  limit.origin = proto::LimitOrigin::kSite;
  return limit;
}

}  // namespace

// Adds the bounds on the bookings of a user who is not an administrator, and the most that is
// booked in any 7 days.
void LimitMethods::add_booking_bounds(uid_t uid, std::vector<proto::UserLimit>& limits) const {
  const lease::BookingBounds bounds = parts_.allowances.booking_bounds(uid);
  const auto booked = parts_.allowances.counted_bookings();
  auto own = booked;
  std::erase_if(own, [uid](const auto& each) { return each.uid != uid; });
  const WallTime now = parts_.wall_clock();
  limits.push_back(booking_bound(Name::kBookingLength, bounds.longest, bounds.longest.count() > 0,
                                 std::nullopt));
  limits.push_back(booking_bound(Name::kBookedHours, most_booked(bounds, bounds.user_percent),
                                 bounds.user_percent < 100, fullest_window(own, now)));
  limits.push_back(booking_bound(Name::kAllBookedHours, most_booked(bounds, bounds.all_percent),
                                 bounds.all_percent < 100, fullest_window(booked, now)));
}

Outcome LimitMethods::on(const Caller& caller, const proto::GetLimits& call) {
  const uid_t uid = call.uid.value_or(caller.uid);
  if (uid != caller.uid && !parts_.views.is_administrator(caller.uid)) {
    return refused({Code::kDenied, 0, "only administrators can query other users' limits"});
  }
  proto::GetLimits::Reply reply;
  reply.uid = uid;
  reply.user = parts_.views.user_name(uid);
  reply.window_seconds = parts_.config.hours_window.count();
  std::int64_t booked = 0;
  for (const BookingEntry& entry : parts_.tables.bookings) booked += entry.asked.uid == uid;
  reply.limits =
      limits_of(parts_.allowances.standing_of(uid), parts_.config.max_leases_per_user, booked);
  add_booking_bounds(uid, reply.limits);
  reply.fair_share = parts_.views.share(uid);
  return replied<proto::GetLimits>(reply);
}

}  // namespace gpurota::daemon
