// The options of `gpurota web` as typed, made into what they mean. Pure.
#pragma once

#include "base/result.h"
#include "cli/args/args.h"

namespace gpurota::cli {

struct Raw;

// kInvalid: options that do not go together.
Result<WebOptions> parse_web(const Raw& raw);

}  // namespace gpurota::cli
