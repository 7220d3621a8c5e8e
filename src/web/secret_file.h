// Reads secrets from files of the administrator.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace gpurota::web {

constexpr std::size_t kLeastSecret = 16;  // characters

// Reads the file at `path`, without trailing white space. An error names `option`.
Result<std::string> read_secret(const std::string& option, const std::string& path);

}  // namespace gpurota::web
