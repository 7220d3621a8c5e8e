// Finds a command like a shell, before anything is reserved for it.
#pragma once

#include <tl/expected.hpp>

#include <string>

namespace gpurota::cli {

struct LookupError {
  int exit_code = 0;    // kExitNotFound or kExitCannotExecute
  std::string message;  // names the command
};

// The file for `name`: `name` itself if it has a slash, else the first executable file of that name
// in the folders of `path` ($PATH; nullptr: unset).
tl::expected<std::string, LookupError> find_command(const std::string& name, const char* path);

// The path of a program in this program's folder; empty: that folder is unknown.
std::string beside_us(const std::string& program);

// Whether this program of ours can be executed: it is beside this one, in the folder of daemons
// next to that (users' PATH may lack it), or on PATH.
bool is_installed(const std::string& program);

}  // namespace gpurota::cli
