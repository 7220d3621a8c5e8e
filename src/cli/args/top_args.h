// The options of `gpurota top`: from their text to values. Pure.
#pragma once

#include "base/result.h"
#include "cli/args/args.h"

namespace gpurota::cli {

struct Raw;

// kInvalid: not a size.
Result<TopOptions> parse_top(const Raw& raw);

}  // namespace gpurota::cli
