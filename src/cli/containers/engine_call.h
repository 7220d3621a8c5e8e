// Finds which container engine a command starts, and where options can be added. Pure: words in, a
// struct out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// Apptainer includes SingularityCE: both take the same variables. ctr is only for scripts (`gpurota
// container-args`), because it does not report when the container of its command has ended.
enum class Engine { kDocker, kPodman, kNerdctl, kApptainer, kCtr };

// "docker", …, as on the command line; nullopt for any other word.
std::optional<Engine> parse_engine(std::string_view word);

struct EngineCall {
  Engine engine = Engine::kDocker;
  std::size_t subcommand_at = 1;  // the index of the first word that is not an option of the engine
  std::size_t options_at = 0;     // after `run`: the index of the first of its options
  std::string id_file{};          // given by the user (--cidfile)
  bool outlives = false;          // the command ends before its container does: --detach, create
  bool made_before = false;       // it makes no container: start, exec
  bool elsewhere = false;         // its engine may be on another machine (--host, --context, --url)
  bool all_devices = false;       // it is privileged or has our /dev, so it sees all GPUs
  bool own_label = false;         // the user sets its SELinux label
  // The GPUs that the user names: values of --gpus, and of --device with NVIDIA's names.
  std::vector<std::string> gpus;
};

// For $DOCKER_HOST, $CONTAINER_HOST and options: whether the engine at this address may be on
// another machine. "": no address.
bool is_elsewhere(std::string_view address);

// nullopt: not an engine, or a call that makes no container ("podman ps").
std::optional<EngineCall> engine_call(const std::vector<std::string>& command);

// A hint for a command that engine_call does not support and that starts containers ("docker
// compose"); empty: it is not such a command.
std::string engine_hint(const std::vector<std::string>& command);

}  // namespace gpurota::cli
