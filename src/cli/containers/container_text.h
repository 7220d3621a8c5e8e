// The parts that a container needs for a lease, as text for scripts and compose files (`gpurota
// container-args`). Pure.
#pragma once

#include "base/result.h"
#include "cli/containers/container_parts.h"

#include <string>

namespace gpurota::cli {

// Each returns kInvalid if a path would need quotes, because the readers treat quotes differently.

// The variables and the token, NAME=VALUE on each line: for --env-file of docker and podman, and
// env_file of compose.
Result<std::string> env_file_text(const ContainerParts& parts);
// Options after `run`, on one line, for an unquoted $(…) in a shell.
Result<std::string> options_text(Engine engine, const ContainerParts& parts,
                                 const std::string& env_file);
// A compose file that adds to `service` all that its container needs for the lease.
Result<std::string> compose_text(const ContainerParts& parts, const std::string& env_file,
                                 const std::string& service);

}  // namespace gpurota::cli
