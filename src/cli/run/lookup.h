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

// Whether `program`, one of gpurota's, can be executed from this program's folder, from the folder
// of daemons next to it (../sbin, which users' PATH may lack), or from PATH.
bool is_installed(const std::string& program);

}  // namespace gpurota::cli
