// Which container engine a command starts, and where its own options may stand. Pure: words in, a
// struct out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// Apptainer stands for SingularityCE, too: they take the same variables. ctr is for scripts only
// (`gpurota container-args`), as it does not say when the container of its command has ended.
enum class Engine { kDocker, kPodman, kNerdctl, kApptainer, kCtr };

// "docker", …, as it is called on the command line; nullopt for every other word.
std::optional<Engine> parse_engine(std::string_view word);

struct EngineCall {
  Engine engine = Engine::kDocker;
  std::size_t subcommand_at =
      1;                       // the index of the first word that is no option of the engine itself
  std::size_t options_at = 0;  // behind `run`: that of the first word of its options
  std::string id_file{};       // that it names itself (--cidfile)
  bool outlives = false;       // the command ends before its container does: --detach, create
  bool made_before = false;    // it makes none: start, exec
  bool elsewhere = false;      // its engine may be on another machine (--host, --context, --url)
  bool all_devices = false;    // whatever is named: it is privileged, or has our /dev
  bool own_label = false;      // it says itself what SELinux is to make of it
  // The GPUs that it names itself: values of --gpus, and of --device with NVIDIA's.
  std::vector<std::string> gpus;
};

// Of $DOCKER_HOST, $CONTAINER_HOST, and options: whether what answers there may be on another
// machine. "": nothing is said.
bool is_elsewhere(std::string_view address);

// nullopt: no engine, or a call that makes no container ("podman ps").
std::optional<EngineCall> engine_call(const std::vector<std::string>& command);

// A hint for a command that engine_call does not know and that starts containers ("docker
// compose"); empty: it is none.
std::string engine_hint(const std::vector<std::string>& command);

}  // namespace gpurota::cli
