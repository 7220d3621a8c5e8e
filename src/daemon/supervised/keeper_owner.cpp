#include "daemon/supervised/keeper_owner.h"

#include <fmt/format.h>

#include <string>

namespace gpurota::daemon {

Result<void> check_keeper_owner(ports::Processes& processes, uid_t own_uid, uid_t uid,
                                const char* what) {
  if (own_uid != 0 && uid != own_uid) {
    return fail(Code::kDenied,
                fmt::format("this daemon runs as uid {} and cannot run a {} of another user",
                            own_uid, what));
  }
  if (own_uid == 0 && processes.user_name(uid) == std::to_string(uid)) {
    return fail(Code::kUnavailable,
                fmt::format("there is no account with uid {}, so no {} can run for it; if the user "
                            "database did not answer, try again later",
                            uid, what));
  }
  return {};
}

}  // namespace gpurota::daemon
