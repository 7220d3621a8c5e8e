// The file of `gpurota job add-each`: a command on each line, in words as a shell has them. Pure.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// Spaces separate words; quotes and backslashes keep words together; empty lines and comments (#)
// mean nothing. A line that only a shell could carry out, or that cannot be read, is refused with
// its number.
Result<std::vector<proto::ItemCommand>> parse_command_lines(std::string_view text,
                                                            const std::string& file);

}  // namespace gpurota::cli
