#include "cli/args/container_options.h"

#include "cli/handles.h"

namespace gpurota::cli {

Result<Command> parse_container_args(const Raw& raw) {
  ContainerArgsOptions container;
  if (raw.positional.empty()) {
    return fail(Code::kInvalid,
                "which lease? For instance: gpurota reserve --memory 8G --name web; gpurota "
                "container-args web --env-file web.env");
  }
  GPUROTA_ASSIGN_OR_RETURN(container.lease, lease_handle(raw.positional.front()));
  container.format = raw.format.value_or("docker");
  container.service = raw.service.value_or("app");
  const bool variables = container.format == "apptainer";
  const bool file = !variables && container.format != "cdi";
  if (raw.service && container.format != "compose") {
    return fail(Code::kInvalid, "--service is for --format compose");
  }
  if (!file && !raw.env_file.empty()) {
    return fail(Code::kInvalid,
                variables ? "leave out --env-file: the answer for apptainer has the variables in it"
                          : "leave out --env-file: the engine reads the variables itself");
  }
  if (!file) return container;
  if (raw.env_file.size() != 1 || raw.env_file.front().empty()) {
    return fail(Code::kInvalid,
                "give one --env-file FILE: it is written for the container's variables, as the "
                "lease's token must not stand on a command line");
  }
  container.env_file = raw.env_file.front();
  return container;
}

}  // namespace gpurota::cli
