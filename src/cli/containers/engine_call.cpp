#include "cli/containers/engine_call.h"

#include <algorithm>
#include <array>
#include <span>

namespace gpurota::cli {
namespace {

using Words = std::span<const std::string>;

// Options before the subcommand that take the next word: docker(1), podman(1) 4.3 to 5, nerdctl(1). Others are switches.
constexpr auto kValued = std::to_array<std::string_view>({"--config",
                                                          "-c",
                                                          "--context",
                                                          "-H",
                                                          "--host",
                                                          "-l",
                                                          "--log-level",
                                                          "--tlscacert",
                                                          "--tlscert",
                                                          "--tlskey",
                                                          "--cgroup-manager",
                                                          "--conmon",
                                                          "--connection",
                                                          "--db-backend",
                                                          "--events-backend",
                                                          "--hooks-dir",
                                                          "--identity",
                                                          "--imagestore",
                                                          "--module",
                                                          "--namespace",
                                                          "--network-cmd-path",
                                                          "--network-config-dir",
                                                          "--out",
                                                          "--root",
                                                          "--runroot",
                                                          "--runtime",
                                                          "--runtime-flag",
                                                          "--ssh",
                                                          "--storage-driver",
                                                          "--storage-opt",
                                                          "--tmpdir",
                                                          "--url",
                                                          "--volumepath",
                                                          "-a",
                                                          "--address",
                                                          "-n",
                                                          "--cni-netconfpath",
                                                          "--cni-path",
                                                          "--data-root",
                                                          "--host-gateway-ip",
                                                          "--hosts-dir",
                                                          "--snapshotter"});
constexpr auto kAddresses = std::to_array<std::string_view>({"-H", "--host", "--url"});
constexpr auto kOthers =
    std::to_array<std::string_view>({"docker-compose", "podman-compose", "ctr", "crictl", "enroot",
                                     "udocker", "ch-run", "distrobox", "toolbox"});
// Options of `run` that are switches; all others take the next word, unless it is in the same one behind '='.
constexpr auto kSwitches = std::to_array<std::string_view>({"--detach",
                                                            "--disable-content-trust",
                                                            "--env-host",
                                                            "--help",
                                                            "--http-proxy",
                                                            "--init",
                                                            "--interactive",
                                                            "--no-healthcheck",
                                                            "--no-hostname",
                                                            "--no-hosts",
                                                            "--oom-kill-disable",
                                                            "--passwd",
                                                            "--privileged",
                                                            "--publish-all",
                                                            "--quiet",
                                                            "--read-only",
                                                            "--read-only-tmpfs",
                                                            "--replace",
                                                            "--rm",
                                                            "--rmi",
                                                            "--rootfs",
                                                            "--sig-proxy",
                                                            "--tls-verify",
                                                            "--tty",
                                                            "--unsetenv-all",
                                                            "--use-api-socket"});
constexpr std::string_view kShortSwitches = "diPqt";

template <class List>
bool has(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string_view name_of(std::string_view word) { return word.substr(0, word.find('=')); }

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

// "-it", "-d", "-dp": up to the first letter that takes a value.
struct Letters {
  bool detach = false;
  bool value_follows = false;
};

Letters letters_of(std::string_view word) {
  Letters letters;
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (kShortSwitches.find(word[i]) == std::string_view::npos) {
      letters.value_follows = i + 1 == word.size();
      return letters;
    }
    letters.detach = letters.detach || word[i] == 'd';
  }
  return letters;
}

bool is_true(std::string_view word) {
  const std::size_t sign = word.find('=');
  return sign == std::string_view::npos || word.substr(sign + 1) != "false";
}

void note_value(EngineCall& call, std::string_view option, std::string_view value) {
  const bool device = option == "--device" && value.find("nvidia") != std::string_view::npos;
  if (option == "--gpus" || device) call.gpus.emplace_back(value);
  if (option == "--cidfile") call.id_file = true;
}

// The options up to the image, whose name is the first word that is neither one nor a value.
void read_run_options(EngineCall& call, Words words) {
  for (std::size_t i = call.options_at; i < words.size() && is_option(words[i]); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return;
    if (!word.starts_with("--")) {
      const Letters letters = letters_of(word);
      call.outlives = call.outlives || letters.detach;
      if (letters.value_follows) ++i;
      continue;
    }
    const std::string_view name = name_of(word);
    if (name == "--detach") call.outlives = is_true(word);
    if (has(kSwitches, name)) continue;
    if (name.size() != word.size()) {
      note_value(call, name, word.substr(name.size() + 1));
    } else if (++i < words.size()) {
      note_value(call, name, words[i]);
    }
  }
}

// The index of the engine's subcommand; beyond the last word if there is none.
std::size_t subcommand_at(EngineCall& call, Words words) {
  std::size_t i = 1;
  for (; i < words.size() && is_option(words[i]); ++i) {
    const std::string_view word = words[i], name = name_of(word);
    std::string_view value = word.substr(std::min(name.size() + 1, word.size()));
    if (has(kValued, word) && ++i < words.size()) value = words[i];
    call.elsewhere = call.elsewhere || (has(kAddresses, name) && is_elsewhere(value));
  }
  return i;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool is_elsewhere(std::string_view address) {
  return address.find("://") != std::string_view::npos && !address.starts_with("unix:");
}

std::optional<Engine> parse_engine(std::string_view word) {
  if (word == "docker") return Engine::kDocker;
  if (word == "podman") return Engine::kPodman;
  if (word == "nerdctl") return Engine::kNerdctl;
  if (word == "apptainer" || word == "singularity") return Engine::kApptainer;
  return std::nullopt;
}

std::optional<EngineCall> engine_call(const std::vector<std::string>& command) {
  const auto engine = parse_engine(base_name(command.front()));
  if (!engine) return std::nullopt;
  EngineCall call;
  call.engine = *engine;
  if (*engine == Engine::kApptainer) return call;  // it is told by variables, wherever it stands
  std::size_t at = subcommand_at(call, command);
  call.subcommand_at = at;
  if (at < command.size() && command[at] == "container") ++at;
  if (at >= command.size()) return std::nullopt;
  const std::string& subcommand = command[at];
  call.options_at = at + 1;
  if (subcommand == "run") {
    read_run_options(call, command);
    return call;
  }
  call.outlives = subcommand == "create";
  call.made_before = subcommand == "start" || subcommand == "exec";
  return call.outlives || call.made_before ? std::optional(call) : std::nullopt;
}

std::string engine_hint(const std::vector<std::string>& command) {
  const std::string_view first = base_name(command.front());
  const bool composes = command.size() > 1 && command[1] == "compose" && parse_engine(first);
  const bool as_root = first == "sudo" && command.size() > 1 && parse_engine(base_name(command[1]));
  if (as_root) {
    return "the containers that it starts have no lease, as sudo takes its variables away: write "
           "'sudo gpurota run'";
  }
  if (!composes && !has(kOthers, first)) return {};
  return "the containers that it starts have no lease: start them with docker, podman, nerdctl or "
         "apptainer behind "
         "'gpurota run'";
}

}  // namespace gpurota::cli
