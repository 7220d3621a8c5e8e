#include "cli/site/limits_view.h"

#include "base/bytes.h"
#include "base/text.h"
#include "cli/text/share_text.h"
#include "cli/text/time_text.h"

#include <fmt/format.h>

namespace gpurota::cli {
namespace {

using Name = proto::UserLimitName;

std::string what_text(Name name, std::chrono::seconds window) {
  switch (name) {
    case Name::kGpus:
      return "GPUs";
    case Name::kMemory:
      return "GPU memory";
    case Name::kHours:
      return "GPU hours in " + duration_text(window);
    case Name::kDuration:
      return "time of a lease";
    case Name::kWaiting:
      return "waiting requests";
    case Name::kLeases:
      return "leases and requests";
    case Name::kBookings:
      return "bookings";
    case Name::kBookAhead:
      return "time ahead of a booking";
    case Name::kBookingLength:
      return "time of a booking";
    case Name::kBookedHours:
      return "booked GPU hours in 7 d";
    case Name::kAllBookedHours:
      return "the same of all users";
    case Name::kPriority:
      return "priority, up to";
    case Name::kWeight:
      return "weight in turns";
    case Name::kPinned:
      return "pinned host memory";
    case Name::kInteractive:
      return "interactive leases";
    case Name::kCompute:
      return "compute share of a GPU";
    case Name::kUnknown:
      break;
  }
  return {};
}

std::string amount_text(Name name, std::int64_t amount) {
  switch (name) {
    case Name::kMemory:
    case Name::kPinned:
      return to_string(Bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(amount, 0))));
    case Name::kHours:
    case Name::kBookedHours:
    case Name::kAllBookedHours: {
      const double hours = static_cast<double>(amount) / 3600;
      return amount % 3600 == 0 ? std::to_string(amount / 3600) : fmt::format("{:.1f}", hours);
    }
    case Name::kDuration:
    case Name::kBookAhead:
    case Name::kBookingLength:
      return duration_text(std::chrono::seconds(amount));
    case Name::kCompute:
      return fmt::format("{} %", amount);
    case Name::kInteractive:
      return amount > 0 ? "yes" : "no";
    default:
      return std::to_string(amount);
  }
}

std::string origin_text(const proto::UserLimit& limit, const std::string& user,
                        const GroupName& group_name) {
  switch (limit.origin) {
    case proto::LimitOrigin::kUser:
      return "user " + user;
    case proto::LimitOrigin::kGroup: {
      const auto gid = static_cast<gid_t>(limit.group_id.value_or(0));
      const std::string name = group_name(gid);
      return "group " + (name.empty() ? std::to_string(gid) : display_text(name, 32));
    }
    case proto::LimitOrigin::kEveryone:
      return "everyone";
    case proto::LimitOrigin::kSite:
      return limit.name == Name::kLeases ? "max_leases_per_user" : "[bookings]";
    case proto::LimitOrigin::kDefault:
      return "default";
    case proto::LimitOrigin::kUnknown:
      break;
  }
  return "?";
}

// The limit is used up, or nearly.
Colour colour_of(const proto::UserLimit& limit) {
  if (!limit.most || !limit.used) return Colour::kNone;
  if (*limit.used >= *limit.most) return Colour::kRed;
  return *limit.used >= *limit.most / 10 * 9 ? Colour::kYellow : Colour::kNone;
}

}  // namespace

std::string limits_text(const proto::GetLimits::Reply& reply, const Layout& layout,
                        const GroupName& group_name) {
  const std::string user = display_text(reply.user, 32);
  Table table({{user}, {"USED", true}, {"LIMIT", true}, {"FROM", false, 12}});
  for (const proto::UserLimit& limit : reply.limits) {
    const std::string what = what_text(limit.name, std::chrono::seconds(reply.window_seconds));
    if (what.empty()) continue;
    table.add({{what},
               {limit.used ? amount_text(limit.name, *limit.used) : "-", colour_of(limit)},
               {limit.most ? amount_text(limit.name, *limit.most) : "none"},
               {limit.most ? origin_text(limit, user, group_name) : "", Colour::kDim}});
  }
  return table.render(layout) + share_line(reply);
}

}  // namespace gpurota::cli
