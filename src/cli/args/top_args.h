// The options of `gpurota top` as typed, made into what they mean. Pure.
#pragma once

#include "base/result.h"
#include "cli/args/args.h"

namespace gpurota::cli {

struct Raw;

// kInvalid: a size that is none.
Result<TopOptions> parse_top(const Raw& raw);

}  // namespace gpurota::cli
