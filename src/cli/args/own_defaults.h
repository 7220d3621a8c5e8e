// A user's default options of commands: ~/.config/gpurota/config.toml.
//
//     [run]                 # options of gpurota run, by their long names
//     memory = "8G"
//     [reserve]
//     for = "2h"
//     [output]              # of every command: color, quiet, verbose
//     color = "never"
#pragma once

#include "base/result.h"
#include "cli/raw.h"

#include <string>
#include <string_view>

namespace gpurota::cli {

// The content of the file. Only option names and kinds of values have been checked; the command
// checks the rest.
struct OwnDefaults {
  std::string path;
  Raw run, reserve, output;
};

// Pure. An error names the file and the line.
Result<OwnDefaults> parse_own_defaults(std::string_view text, const std::string& path);

// The caller's defaults; none if there is no such file. A file that another user can write is
// refused, because it decides the GPUs and the note of commands.
Result<OwnDefaults> read_own_defaults();

// Adds the defaults of `command` ("run", "reserve") for options that were not typed. A default that
// excludes a typed option is left out. Returns the added options as they would be typed; empty:
// none.
std::string add_defaults(std::string_view command, const OwnDefaults& defaults, Raw& raw);
// Adds the defaults of [output].
void add_output_defaults(const OwnDefaults& defaults, Raw& raw);

}  // namespace gpurota::cli
