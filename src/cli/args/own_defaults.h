// What a user wants of commands without saying it each time: ~/.config/gpurota/config.toml.
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

// What was read. Nothing of it is checked but the names of options and the kinds of values: that is
// the command's to do.
struct OwnDefaults {
  std::string path;
  Raw run, reserve, output;
};

// Pure. An error names the file and the line.
Result<OwnDefaults> parse_own_defaults(std::string_view text, const std::string& path);

// Those of the user who calls; none if there is no such file. A file that somebody else can write
// is refused: it says which GPUs, and whose note, a command has.
Result<OwnDefaults> read_own_defaults();

// Adds to what was typed for `command` ("run", "reserve") what was not. An option that excludes one
// that was typed is left out. What was added comes back as it would be typed; empty: nothing.
std::string add_defaults(std::string_view command, const OwnDefaults& defaults, Raw& raw);
// Adds those of [output].
void add_output_defaults(const OwnDefaults& defaults, Raw& raw);

}  // namespace gpurota::cli
