// Accounts that users name. The daemon takes numbers: looking a name up may take a while, which is the user's own.
#pragma once

#include "base/result.h"

#include <string>

#include <sys/types.h>

namespace gpurota::cli {

// Of the name of an account, or a uid as text; kNotFound.
Result<uid_t> uid_of(const std::string& user);

}  // namespace gpurota::cli
