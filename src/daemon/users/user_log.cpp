#include "daemon/users/user_log.h"

#include <charconv>
#include <utility>

namespace gpurota::daemon {
namespace {

constexpr uid_t kNobody = static_cast<uid_t>(-1);

uid_t uid_in(const log::Fields& fields) {
  uid_t uid = kNobody;
  for (const log::Field& field : fields) {
    const char* const end = field.value.data() + field.value.size();
    if (field.key == "uid") (void)std::from_chars(field.value.data(), end, uid);
  }
  return uid;
}

}  // namespace

UserLog::UserLog(std::function<TimePoint()> now) : now_(std::move(now)) {
  log::set_filter([this](std::string_view message, const log::Fields& fields) {
    return is_written(message, fields);
  });
}

UserLog::~UserLog() { log::set_filter({}); }

bool UserLog::is_written(std::string_view message, const log::Fields& fields) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (writing_counts_) return true;
  const uid_t uid = uid_in(fields);
  return lines_.admit({uid, std::string(message), "", std::nullopt}, now_(),
                      uid == kNobody ? kMostToldOfNobody : kMostTold);
}

void UserLog::write_counts() {
  std::vector<RateLimiter::Suppressed> counted;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    counted = lines_.take_counts(now_());
    writing_counts_ = !counted.empty();
  }
  if (counted.empty()) return;
  for (const RateLimiter::Suppressed& each : counted) {
    log::warn("more of the same within ten seconds, not written",
              {{"line", each.key.operation},
               {"uid", each.key.uid == kNobody ? "-" : std::to_string(each.key.uid)},
               {"count", each.count}});
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  writing_counts_ = false;
}

}  // namespace gpurota::daemon
