// All settings by key: what parse() takes over, and what is shown of a configuration. Pure.
#pragma once

#include "config/setting.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::config {

// Those of the table, and of the users, groups and GPUs that `config` names. The result refers to
// `config`.
Settings settings_of(Config& config);

}  // namespace gpurota::config
