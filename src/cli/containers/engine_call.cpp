#include "cli/containers/engine_call.h"

#include <algorithm>
#include <span>

namespace gpurota::cli {
namespace {

using WordSpan = std::span<const std::string>;

// Lists of words, each with a space on both sides. Options before the subcommand that take the next
// word: docker(1), podman(1) 4.3 to 5, nerdctl(1). All others are switches.
constexpr std::string_view kValued =
    " --config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey "
    "--cgroup-manager "
    "--conmon --connection --db-backend --events-backend --hooks-dir --identity --imagestore "
    "--module --namespace --network-cmd-path --network-config-dir --out --root --runroot --runtime "
    "--runtime-flag --ssh --storage-driver --storage-opt --tmpdir --url --volumepath -a --address "
    "-n "
    "--cdi-spec-dirs --cni-netconfpath --cni-path --data-root --host-gateway-ip --hosts-dir "
    "--snapshotter ";
// Options of `run` that are switches. All others take the next word, unless the value follows '='.
constexpr std::string_view kSwitches =
    " --detach --disable-content-trust --env-host --help --http-proxy --init --interactive "
    "--no-healthcheck --no-hostname --no-hosts --oom-kill-disable --passwd --privileged "
    "--publish-all --quiet --read-only --read-only-tmpfs --replace --rm --rmi --rootfs --sig-proxy "
    "--tls-verify --tty --unsetenv-all --use-api-socket ";
// Subcommands, and other programs, that start containers in other ways.
constexpr std::string_view kStarting =
    " compose kube play pod restart unpause stack swarm service ";
constexpr std::string_view kOthers =
    " docker-compose podman-compose ctr crictl enroot udocker ch-run distrobox toolbox ";
constexpr std::string_view kShortSwitches = "diPqt";

bool has(std::string_view list, std::string_view word) {
  return list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

std::string_view name_of(std::string_view word) { return word.substr(0, word.find('=')); }

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

// Whether a switch is on: some users write `=false`, which pflag(3) of the engines accepts.
bool is_true(std::string_view word) {
  const std::size_t sign = word.find('=');
  return sign == std::string_view::npos || !has(" false False FALSE f F 0 ", word.substr(sign + 1));
}

// "-it", "-d", "-dp", "-d=false": the letters up to the first that takes a value.
struct Letters {
  bool detach = false;
  bool value_follows = false;
};

Letters letters_of(std::string_view word) {
  Letters letters;
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (word[i] == '=') {
      if (word[i - 1] == 'd') letters.detach = is_true(word);
      return letters;
    }
    if (kShortSwitches.find(word[i]) == std::string_view::npos) {
      letters.value_follows = i + 1 == word.size();
      return letters;
    }
    letters.detach = letters.detach || word[i] == 'd';
  }
  return letters;
}

void note_value(EngineCall& call, std::string_view option, std::string_view value) {
  const bool device = option == "--device" && value.find("nvidia") != std::string_view::npos;
  if (option == "--gpus" || device) call.gpus.emplace_back(value);
  if (option == "--cidfile") call.id_file = value;
  const bool label = value.starts_with("label=") || value.starts_with("label:");
  if (option == "--security-opt" && label) call.own_label = true;
  const bool volume = option == "--volume" || option == "-v";
  if (volume && value.starts_with("/dev:")) call.all_devices = true;
}

// Reads the options up to the image, which is the first word that is neither an option nor a value.
void read_run_options(EngineCall& call, WordSpan words) {
  for (std::size_t i = call.options_at; i < words.size() && is_option(words[i]); ++i) {
    const std::string_view word = words[i];
    if (word == "--") return;
    if (!word.starts_with("--")) {
      const Letters letters = letters_of(word);
      call.outlives = call.outlives || letters.detach;
      if (letters.value_follows && ++i < words.size()) note_value(call, word, words[i]);
      continue;
    }
    const std::string_view name = name_of(word);
    if (name == "--detach") call.outlives = is_true(word);
    if (name == "--privileged" && is_true(word)) call.all_devices = true;
    if (has(kSwitches, name)) continue;
    if (name.size() != word.size()) {
      note_value(call, name, word.substr(name.size() + 1));
    } else if (++i < words.size()) {
      note_value(call, name, words[i]);
    }
  }
}

// docker's -c is a context, podman's a connection.
bool leads_elsewhere(std::string_view option, std::string_view value) {
  if (option == "-H" || option == "--host" || option == "--url") return is_elsewhere(value);
  if (option == "-c" || option == "--context") return value != "default";
  if (option == "-r" || option == "--remote") return value != "false";
  return option == "--connection";
}

// The index of the engine's subcommand; beyond the last word if there is none.
std::size_t subcommand_at(EngineCall& call, WordSpan words) {
  std::size_t i = 1;
  for (; i < words.size() && is_option(words[i]); ++i) {
    const std::string_view word = words[i];
    const bool glued = word.starts_with("-H") && word.size() > 2;
    const std::string_view name = glued ? word.substr(0, 2) : name_of(word);
    std::string_view value =
        word.substr(std::min(glued ? name.size() : name.size() + 1, word.size()));
    if (has(kValued, word) && ++i < words.size()) value = words[i];
    call.elsewhere = call.elsewhere || leads_elsewhere(name, value);
  }
  return i;
}

bool is_instance(WordSpan words) {
  const auto at = std::find_if_not(words.begin() + 1, words.end(), is_option);
  return at != words.end() && *at == "instance";
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool is_elsewhere(std::string_view address) {
  return !address.empty() && address.front() != '/' && !address.starts_with("unix:") &&
         !address.starts_with("fd:");
}

std::optional<Engine> parse_engine(std::string_view word) {
  if (word == "docker") return Engine::kDocker;
  if (word == "podman" || word == "podman-remote") return Engine::kPodman;
  if (word == "nerdctl") return Engine::kNerdctl;
  if (word == "apptainer" || word == "singularity") return Engine::kApptainer;
  return std::nullopt;
}

std::optional<EngineCall> engine_call(const std::vector<std::string>& command) {
  const auto engine = parse_engine(base_name(command.front()));
  if (!engine) return std::nullopt;
  EngineCall call;
  call.engine = *engine;
  call.elsewhere = base_name(command.front()) == "podman-remote";
  if (*engine == Engine::kApptainer) {  // variables configure it, so `subcommand_at` is not needed
    call.outlives = is_instance(command);
    return call;
  }
  std::size_t at = subcommand_at(call, command);
  call.subcommand_at = at;
  if (at < command.size() && command[at] == "container") ++at;
  if (at >= command.size()) return std::nullopt;
  const std::string& subcommand = command[at];
  call.options_at = at + 1;
  call.made_before = subcommand == "start" || subcommand == "exec";
  if (call.made_before) return call;
  if (subcommand != "run" && subcommand != "create") return std::nullopt;
  read_run_options(call, command);
  call.outlives = call.outlives || subcommand == "create";
  return call;
}

std::string engine_hint(const std::vector<std::string>& command) {
  const std::string_view first = base_name(command.front());
  if (first == "sudo" && command.size() > 1 && parse_engine(base_name(command[1]))) {
    return "the containers that it starts have no lease, as sudo takes its variables away: write "
           "'sudo gpurota run'";
  }
  EngineCall call;
  const std::size_t at = parse_engine(first) ? subcommand_at(call, command) : command.size();
  const bool starts = at < command.size() && has(kStarting, command[at]);
  if (!starts && !has(kOthers, first)) return {};
  return "the containers that it starts have no lease: start them with docker, podman, nerdctl or "
         "apptainer behind 'gpurota run', or give them what 'gpurota container-args' prints";
}

}  // namespace gpurota::cli
