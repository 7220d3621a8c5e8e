// gpurota container-args.
#include "base/directory.h"
#include "base/replace_file.h"
#include "cli/commands.h"
#include "cli/containers/container_parts.h"
#include "cli/containers/container_text.h"
#include "cli/lease_variables.h"
#include "cli/queue/queue_text.h"
#include "cli/text/output.h"

#include <filesystem>

#include <unistd.h>

namespace gpurota::cli {
namespace {

Engine engine_of(const std::string& format) {
  if (format == "ctr") return Engine::kCtr;
  return parse_engine(format).value_or(Engine::kDocker);  // compose belongs to docker
}

// Variables for containers that the lease of this shell may have set.
std::vector<std::string> container_variables() {
  std::vector<std::string> names;
  for (const std::string_view prefix : kContainerPrefixes) {
    if (prefix.empty()) continue;
    for (const std::string& name : lease_variables()) names.push_back(std::string(prefix) + name);
  }
  return names;
}

Result<std::string> args_text(const ContainerArgsOptions& options, const ContainerParts& parts) {
  if (options.format == "apptainer") {
    return export_text(apptainer_variables(parts, ::environ), container_variables());
  }
  std::error_code error;
  const std::string file = std::filesystem::absolute(options.env_file, error).string();
  GPUROTA_ASSIGN_OR_RETURN(std::string text,
                           options.format == "compose"
                               ? compose_text(parts, file, options.service)
                               : options_text(engine_of(options.format), parts, file));
  GPUROTA_ASSIGN_OR_RETURN(const std::string variables, env_file_text(parts));
  // The token gives access to the lease: nobody else may read the file, or replace it.
  if (auto own = check_own_place(std::filesystem::path(file).parent_path().string()); !own) {
    own.error().message = "cannot write " + file + ": " + own.error().message;
    return tl::unexpected(std::move(own).error());
  }
  constexpr mode_t kMine = 0600;
  GPUROTA_TRY(replace_file(file, variables, kMine));
  return text;
}

// If NVIDIA's description exists, our description has no libraries: the container gets the
// libraries from NVIDIA's.
Result<std::string> device_text(const proto::GetEnvironment::Reply& lease, bool described) {
  if (!lease.cdi_device) {
    return fail(
        Code::kUnavailable,
        "engines know no device for it: only reservations have one, and only where the site "
        "has set containers.cdi in gpurota.toml; write --format docker or podman");
  }
  std::string text = "--device " + *lease.cdi_device;
  for (const proto::LeaseGpu& gpu : lease.lease.gpus) {
    if (described) text += " --device " + containers::described_name(gpu);
  }
  return text + "\n";
}

}  // namespace

int container_args(const Context& context, const ContainerArgsOptions& options) {
  auto connection = context.connect();
  if (!connection) return failed(connection.error());
  const auto needs = connection->call(proto::GetEnvironment{*options.lease, true});
  if (!needs) return failed(needs.error());
  const ContainerHost host = read_container_host(*needs);
  if (options.format == "cdi") {
    const auto text = device_text(*needs, host.driver.described);
    return text ? shown(*text) : failed(text.error());
  }
  EngineCall call;
  call.engine = engine_of(options.format);
  const auto parts = container_parts(*needs, call, host);
  if (!parts) return failed(parts.error());
  const auto text = args_text(options, *parts);
  return text ? shown(*text) : failed(text.error());
}

}  // namespace gpurota::cli
