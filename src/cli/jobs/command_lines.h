// The file of `gpurota job add-each`: a command on each line, in words as a shell has them. Pure.
#pragma once

#include "base/result.h"
#include "proto/methods.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// Spaces part words; quotes and backslashes keep them together; empty lines, and # to the end of a
// line, mean nothing. Whatever only a shell can do is refused, as is all that cannot be
// read: with the number of the line.
Result<std::vector<proto::ItemCommand>> parse_command_lines(std::string_view text,
                                                            const std::string& file);

}  // namespace gpurota::cli
