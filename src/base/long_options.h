// The loop by which our daemons and plugins read their command lines (getopt_long), and its
// refusals. Pure but for getopt's own globals: once, before there are threads.
#pragma once

#include "base/result.h"

#include <functional>

#include <getopt.h>

namespace gpurota {

// `known` ends with a row of zeros. `take` has each option and its value (null for one without); -h
// and -V are known to all. kInvalid for an option that is unknown, one whose value is missing, and
// for arguments; the sentence names `program`.
Result<void> read_long_options(
    int argc, char* const* argv, const option* known, const char* program,
    const std::function<Result<void>(int option, const char* value)>& take);

}  // namespace gpurota
