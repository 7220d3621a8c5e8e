#include "lease/allowance.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::lease {
namespace {

// Calls visit(field of a, field of b) for each field.
template <class Visit>
void for_each_field(UserLimits& a, const UserLimits& b, Visit visit) {
  visit(a.gpus, b.gpus);
  visit(a.memory, b.memory);
  visit(a.hours, b.hours);
  visit(a.waiting, b.waiting);
  visit(a.duration, b.duration);
  visit(a.priority, b.priority);
  visit(a.weight, b.weight);
  visit(a.pinned, b.pinned);
  visit(a.book_ahead, b.book_ahead);
  visit(a.bookings, b.bookings);
  visit(a.interactive, b.interactive);
  visit(a.compute, b.compute);
}

void fill_gaps(UserLimits& limits, const UserLimits& broader) {
  for_each_field(limits, broader, [](auto& field, const auto& other) {
    if (!field) field = other;
  });
}

void take_larger(UserLimits& limits, const UserLimits& other) {
  for_each_field(limits, other, [](auto& field, const auto& theirs) {
    if (theirs && (!field || *theirs > *field)) field = theirs;
  });
}

// The most specific rule that sets this field; among groups, the most generous rule.
template <class Field>
LimitOrigin origin_of(Field UserLimits::*field, const ResolvedRules& rules, uid_t uid,
                      const std::set<gid_t>& groups) {
  using Rule = LimitOrigin::Rule;
  const auto own = rules.users.find(uid);
  if (own != rules.users.end() && own->second.*field) return {Rule::kUser};
  LimitOrigin origin;
  Field most;
  for (const auto& [gid, rule] : rules.groups) {
    if (!groups.contains(gid) || !(rule.*field)) continue;
    if (most && *(rule.*field) <= *most) continue;
    most = rule.*field;
    origin = {Rule::kGroup, gid};
  }
  if (most) return origin;
  return {rules.everyone.*field ? Rule::kEveryone : Rule::kDefault};
}

tl::unexpected<Error> refusal(const std::string& limit, const std::string& held,
                              const std::string& asked, const char* remedy) {
  return fail(Code::kLimit, fmt::format("the site allows you {}; you have {} and ask for {}: {}",
                                        limit, held, asked, remedy));
}

std::string gpus_text(int count) { return fmt::format("{} GPU{}", count, count == 1 ? "" : "s"); }

constexpr const char* kRemedy =
    "release something, ask for less, or ask your administrator (gpurota limits shows your limits)";

Result<void> check_hours(const UserLimits& limits, const Holding& held, const Asking& asked,
                         std::chrono::seconds window) {
  if (*limits.hours == UserLimits::kUnlimited) return {};
  const std::chrono::seconds most = std::chrono::hours(*limits.hours);
  const auto lasts = asked.added ? asked.added : asked.duration;
  const double wanted =
      lasts ? static_cast<double>(lasts->count()) * asked.parts.value_or(asked.gpus) : 0;
  const std::chrono::seconds so_far = held.gpu_time + held.promised;
  const double after = static_cast<double>(so_far.count()) + wanted;
  const bool within = lasts ? after <= static_cast<double>(most.count()) : so_far < most;
  if (within) return {};
  std::string had = fmt::format("used {:.1f}", static_cast<double>(held.gpu_time.count()) / 3600);
  if (held.promised > std::chrono::seconds(0)) {
    had += fmt::format(" and will use {:.1f}", static_cast<double>(held.promised.count()) / 3600);
  }
  return refusal(fmt::format("{} GPU hour{} in {}", *limits.hours, *limits.hours == 1 ? "" : "s",
                             duration_text(window)),
                 had, lasts ? fmt::format("{:.1f}", wanted / 3600) : std::string("more"),
                 "wait until older use falls out of that time, or ask your administrator");
}

Result<void> check_compute(const UserLimits& limits, const Asking& asked) {
  if (asked.compute == 0 || asked.compute_there + asked.compute <= *limits.compute) return {};
  const std::string remedy =
      *limits.compute > asked.compute_there
          ? fmt::format("write --compute {}%", *limits.compute - asked.compute_there)
          : "leave out --compute";
  return refusal(fmt::format("{} % of a GPU's compute time ([limits] compute)", *limits.compute),
                 fmt::format("{} % there", asked.compute_there), fmt::format("{} %", asked.compute),
                 (remedy + ", or ask your administrator").c_str());
}

Result<void> check_duration(const UserLimits& limits, const Asking& asked) {
  if (*limits.duration == UserLimits::kUnlimitedTime) return {};
  const std::string most = duration_text(*limits.duration);
  if (!asked.duration) {
    return fail(Code::kLimit, fmt::format("the site allows you leases of {} at most, and this one "
                                          "has no end: say how long it may last",
                                          most));
  }
  if (*asked.duration <= *limits.duration) return {};
  return fail(Code::kLimit, fmt::format("the site allows you leases of {} at most, {} were asked "
                                        "for: ask for less, or ask your administrator",
                                        most, duration_text(*asked.duration)));
}

}  // namespace

UserLimits limits_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups) {
  UserLimits limits;
  if (const auto own = rules.users.find(uid); own != rules.users.end()) limits = own->second;
  UserLimits of_groups;
  for (const auto& [gid, rule] : rules.groups) {
    if (groups.contains(gid)) take_larger(of_groups, rule);
  }
  fill_gaps(limits, of_groups);
  fill_gaps(limits, rules.everyone);
  fill_gaps(limits, default_limits());
  return limits;
}

LimitOrigins origins_of(const ResolvedRules& rules, uid_t uid, const std::set<gid_t>& groups) {
  const auto of = [&](auto field) { return origin_of(field, rules, uid, groups); };
  return {.gpus = of(&UserLimits::gpus),
          .memory = of(&UserLimits::memory),
          .hours = of(&UserLimits::hours),
          .waiting = of(&UserLimits::waiting),
          .duration = of(&UserLimits::duration),
          .priority = of(&UserLimits::priority),
          .weight = of(&UserLimits::weight),
          .pinned = of(&UserLimits::pinned),
          .book_ahead = of(&UserLimits::book_ahead),
          .bookings = of(&UserLimits::bookings),
          .interactive = of(&UserLimits::interactive),
          .compute = of(&UserLimits::compute)};
}

Result<void> check_allowance(const UserLimits& limits, const Holding& held, const Asking& asked,
                             std::chrono::seconds window) {
  // First the limits that do not depend on what the user holds.
  if (asked.priority > *limits.priority) {
    return fail(Code::kLimit, fmt::format("the site allows you priorities up to {}, {} was asked "
                                          "for: ask for less, or ask your administrator",
                                          *limits.priority, asked.priority));
  }
  if (asked.interactive && !*limits.interactive) {
    return fail(Code::kLimit,
                "the site allows you no interactive leases ([limits] interactive): leave out "
                "--latency interactive, or ask your administrator");
  }
  GPUROTA_TRY(check_compute(limits, asked));
  GPUROTA_TRY(check_duration(limits, asked));
  // Add in 64 bits, because a client may ask for as many GPUs as an int can count.
  if (std::int64_t{held.gpus} + asked.gpus > *limits.gpus) {
    return refusal(gpus_text(*limits.gpus), std::to_string(held.gpus), std::to_string(asked.gpus),
                   kRemedy);
  }
  if (held.memory + asked.memory > *limits.memory) {
    return refusal(to_string(*limits.memory) + " of GPU memory", to_string(held.memory),
                   to_string(asked.memory), kRemedy);
  }
  if (asked.waits && held.waiting >= *limits.waiting) {
    return refusal(
        fmt::format("{} waiting request{}", *limits.waiting, *limits.waiting == 1 ? "" : "s"),
        std::to_string(held.waiting), "one more", "cancel one, or ask your administrator");
  }
  return check_hours(limits, held, asked, window);
}

Result<void> check_booking(const UserLimits& limits, const BookingWish& wish) {
  if (std::int64_t{wish.booked} + wish.more > *limits.bookings) {
    return refusal(fmt::format("{} booking{}", *limits.bookings, *limits.bookings == 1 ? "" : "s"),
                   std::to_string(wish.booked), std::to_string(wish.more),
                   "cancel one, ask for fewer, or ask your administrator");
  }
  if (wish.ahead <= *limits.book_ahead) return {};
  return fail(Code::kLimit,
              fmt::format("the site allows you to book {} ahead, and this begins later: ask for an "
                          "earlier time, or ask your administrator",
                          duration_text(*limits.book_ahead)));
}

UserLimits with_all_else_unlimited(UserLimits rule) {
  fill_gaps(rule, default_limits());
  return rule;
}

std::string duration_text(std::chrono::seconds duration) {
  const auto count = duration.count();
  if (count >= 172800 && count % 86400 == 0) return fmt::format("{} days", count / 86400);
  if (count >= 3600 && count % 3600 == 0) return fmt::format("{} h", count / 3600);
  if (count >= 60 && count % 60 == 0) return fmt::format("{} min", count / 60);
  return fmt::format("{} s", count);
}

}  // namespace gpurota::lease
