// The options of `gpurota web`: from their text to values. Pure.
#pragma once

#include "base/result.h"
#include "cli/args/args.h"

namespace gpurota::cli {

struct Raw;

// kInvalid: the options exclude each other.
Result<WebOptions> parse_web(const Raw& raw);

}  // namespace gpurota::cli
