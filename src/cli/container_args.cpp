// gpurota container-args.
#include "base/replace_file.h"
#include "cli/commands.h"
#include "cli/containers/container_parts.h"
#include "cli/containers/container_text.h"
#include "cli/output.h"
#include "cli/queue_text.h"

#include <filesystem>

#include <unistd.h>

namespace gpurota::cli {
namespace {

Engine engine_of(const std::string& format) {
  return parse_engine(format).value_or(Engine::kDocker);  // compose is docker's
}

Result<std::string> args_text(const ContainerArgsOptions& options, const ContainerParts& parts) {
  if (options.format == "apptainer") return export_text(apptainer_variables(parts, ::environ));
  std::error_code error;
  const std::string file = std::filesystem::absolute(options.env_file, error).string();
  GPUROTA_ASSIGN_OR_RETURN(std::string text, options.format == "compose"
                                                 ? compose_text(parts, file, options.service)
                                                 : options_text(parts, file));
  GPUROTA_ASSIGN_OR_RETURN(const std::string variables, env_file_text(parts));
  // The token is the lease: nobody else reads it.
  constexpr mode_t kMine = 0600;
  GPUROTA_TRY(replace_file(file, variables, kMine));
  return text;
}

}  // namespace

int container_args(const Context& context, const ContainerArgsOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto needs = connection->call(proto::GetEnvironment{*options.lease, true});
  if (!needs) return failed(needs.error());
  EngineCall call;
  call.engine = engine_of(options.format);
  const auto parts = container_parts(*needs, call, read_container_host(*needs));
  if (!parts) return failed(parts.error());
  const auto text = args_text(options, *parts);
  return text ? shown(*text) : failed(text.error());
}

}  // namespace gpurota::cli
