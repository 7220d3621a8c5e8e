#include "cli/site/account_names.h"

#include "base/account_names.h"

#include <fmt/format.h>

namespace gpurota::cli {

Result<std::optional<uid_t>> uid_of(const std::optional<std::string>& user) {
  if (!user) return std::nullopt;
  const auto uid = read_uid(*user);
  if (uid) return *uid;
  if (uid.error().code != Code::kNotFound) return tl::unexpected(uid.error());
  return fail(Code::kNotFound,
              fmt::format("{}: write the name of an account, or its uid", uid.error().message));
}

}  // namespace gpurota::cli
