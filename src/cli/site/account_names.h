// Accounts that users name. The daemon takes only numbers: looking up a name may take a while, for
// which only the user should wait.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::cli {

// For an option that takes the name of an account, or a uid as text; nothing if it is not given.
// kNotFound.
Result<std::optional<uid_t>> uid_of(const std::optional<std::string>& user);

}  // namespace gpurota::cli
