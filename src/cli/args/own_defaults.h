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

// The file's content. Only names of options and kinds of values have been checked; the command
// checks the rest.
struct OwnDefaults {
  std::string path;
  Raw run, reserve, output;
};

// Pure. An error names the file and the line.
Result<OwnDefaults> parse_own_defaults(std::string_view text, const std::string& path);

// Those of the user who calls; none if there is no such file. A file that somebody else can write
// is refused: it says which GPUs, and whose note, a command has.
Result<OwnDefaults> read_own_defaults();

// Adds to the options that were typed for `command` ("run", "reserve") the defaults that were not.
// An option that excludes one that was typed is left out. Returns the added options as they would
// be typed; empty: none.
std::string add_defaults(std::string_view command, const OwnDefaults& defaults, Raw& raw);
// Adds those of [output].
void add_output_defaults(const OwnDefaults& defaults, Raw& raw);

}  // namespace gpurota::cli
