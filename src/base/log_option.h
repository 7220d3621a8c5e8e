// --log-level, for all programs that log.
#pragma once

#include "base/log.h"
#include "base/options.h"

#include <string>

namespace gpurota {

// The option --log-level; its value is stored in `level`.
inline Option log_level_option(log::Level& level) {
  const auto take = [&level](const std::string& value) -> Result<void> {
    GPUROTA_ASSIGN_OR_RETURN(level, log::parse_level(value));
    return {};
  };
  return {'\0', "--log-level", take, "LEVEL", "debug, info, warning or error (info)"};
}

}  // namespace gpurota
