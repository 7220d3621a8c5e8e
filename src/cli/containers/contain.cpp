#include "cli/containers/contain.h"

#include "base/text.h"
#include "cli/containers/container_parts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace gpurota::cli {
namespace {

constexpr std::size_t kRemarkColumns = 2000;

std::string_view own_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_elsewhere_by_environment(Engine engine) {
  if (engine == Engine::kPodman) {
    return is_elsewhere(own_variable("CONTAINER_HOST")) ||
           !own_variable("CONTAINER_CONNECTION").empty();
  }
  if (engine != Engine::kDocker) return false;
  const std::string_view context = own_variable("DOCKER_CONTEXT");
  return is_elsewhere(own_variable("DOCKER_HOST")) || (!context.empty() && context != "default");
}

}  // namespace

Result<void> check_engine_call(const std::vector<std::string>& command, bool reserved) {
  const auto call = engine_call(command);
  if (!call) return {};
  const std::string name = display_text(command.front(), 60);
  if (call->elsewhere || is_elsewhere_by_environment(call->engine)) {
    return fail(Code::kInvalid, fmt::format("{} starts its containers on another machine, and the "
                                            "lease is for GPUs of this one: run gpurota there",
                                            name));
  }
  if (call->made_before) {
    return fail(Code::kInvalid,
                fmt::format("that container was made without the lease, and cannot get it now: "
                            "write 'gpurota run -- {} run …'",
                            name));
  }
  if (!call->outlives || reserved) return {};
  return fail(Code::kInvalid,
              fmt::format("the lease would end with this command of {}, before the container: "
                          "leave out --detach (-d), or reserve first and write 'gpurota run "
                          "--lease LEASE -- {} run -d …'",
                          name, name));
}

Result<Contained> contain(client::Connection& connection, LeaseId lease, const EngineCall& call,
                          const std::vector<std::string>& command) {
  GPUROTA_ASSIGN_OR_RETURN(const proto::GetEnvironment::Reply needs,
                           connection.call(proto::GetEnvironment{lease, true}));
  GPUROTA_ASSIGN_OR_RETURN(const ContainerParts parts,
                           container_parts(needs, call, read_container_host(needs)));
  Contained contained{command, needs.environment, needs.preload, {}, nullptr};
  if (call.engine == Engine::kApptainer) {
    contained.remark = "variables for the container:";
    for (proto::Variable& variable : apptainer_variables(parts, ::environ)) {
      contained.remark += " " + variable.name;
      contained.variables.push_back(std::move(variable));
    }
    return contained;
  }
  std::vector<std::string> options = engine_options(parts);
  if (!call.outlives) {
    const auto subcommand = command.begin() + static_cast<std::ptrdiff_t>(call.subcommand_at);
    GPUROTA_ASSIGN_OR_RETURN(contained.end,
                             ContainerEnd::make({command.begin(), subcommand}, call.id_file));
    if (call.id_file.empty()) {
      options.insert(options.end(), {"--cidfile", contained.end->id_file()});
    }
  }
  contained.remark =
      fmt::format("options for the container: {}", display_command(options, kRemarkColumns));
  contained.words.insert(contained.words.begin() + static_cast<std::ptrdiff_t>(call.options_at),
                         options.begin(), options.end());
  return contained;
}

}  // namespace gpurota::cli
