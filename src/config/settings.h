// All settings by key: parse() reads them, and the commands that show a configuration use them.
// Pure.
#pragma once

#include "config/setting.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::config {

// The fixed settings, and those of the users, groups and GPUs that `config` names. The result
// refers to `config`, which must outlive it.
Settings settings_of(Config& config);

}  // namespace gpurota::config
