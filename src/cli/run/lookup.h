// Finds a command as a shell would, before anything is held for it.
#pragma once

#include <tl/expected.hpp>

#include <string>

namespace gpurota::cli {

struct LookupError {
  int exit_code = 0;    // kExitNotFound or kExitCannotExecute
  std::string message;  // names the command
};

// The file that `name` is: itself if it has a slash, else the first executable one of the folders
// of `path` ($PATH; nullptr: unset).
tl::expected<std::string, LookupError> find_command(const std::string& name, const char* path);

// The path that a program beside this one has; empty: this one's own cannot be told.
std::string beside_us(const std::string& program);

}  // namespace gpurota::cli
