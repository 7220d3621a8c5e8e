#include "cli/account_names.h"

#include "base/text.h"

#include <fmt/format.h>

#include <charconv>

#include <pwd.h>

namespace gpurota::cli {

Result<uid_t> uid_of(const std::string& user) {
  // Names may be numbers, so the name is asked first.
  if (const passwd* const account = ::getpwnam(user.c_str())) return account->pw_uid;
  uid_t uid = 0;
  const char* const end = user.data() + user.size();
  const auto [stop, error] = std::from_chars(user.data(), end, uid);
  if (error == std::errc() && stop == end && !user.empty()) return uid;
  return fail(Code::kNotFound,
              fmt::format("there is no user '{}': write the name of an account, or its uid",
                          display_text(user, 60)));
}

}  // namespace gpurota::cli
