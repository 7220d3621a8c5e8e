// Accounts that users name. The daemon takes numbers: looking a name up may take a while, which is
// the user's own.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::cli {

// Of an option that takes the name of an account, or a uid as text; nothing where it is not given.
// kNotFound.
Result<std::optional<uid_t>> uid_of(const std::optional<std::string>& user);

}  // namespace gpurota::cli
