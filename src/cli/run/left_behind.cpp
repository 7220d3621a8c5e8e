#include "cli/run/left_behind.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

// A command that hands its work to a server, which may already run. The list of these commands
// affects only two messages: one about processes that the command left behind, which the daemon has
// counted, and one about a command that has clearly handed its work over.
struct Server {
  std::string_view name;
  bool (*hands_over)(const Words& command);  // without waiting for the work
  std::string_view instead;
};

bool always(const Words&) { return true; }

bool has_word(const Words& command, std::string_view letters) {
  return std::any_of(command.begin() + 1, command.end(),
                     [&](const std::string& word) { return word.starts_with(letters); });
}

bool is_detached(const Words& command) { return has_word(command, "-d"); }

bool has_no_scope(const Words& command) {
  return !has_word(command, "--scope") && !has_word(command, "--wait") &&
         !has_word(command, "--pipe") && !has_word(command, "--pty") && !has_word(command, "-t") &&
         !has_word(command, "-P");
}

constexpr Server kServers[] = {
    {"tmux", is_detached, "tmux new-session -d 'gpurota run … -- COMMAND'"},
    {"screen", is_detached, "screen -dm gpurota run … -- COMMAND"},
    {"at", always, "echo 'gpurota run … -- COMMAND' | at …"},
    {"batch", always, "echo 'gpurota run … -- COMMAND' | batch"},
    {"systemd-run", has_no_scope, "systemd-run … gpurota run … -- COMMAND"},
    {"ssh", always, "ssh HOST gpurota run … -- COMMAND"},
};

const Server* find_server(const Words& command) {
  const std::string& file = command.front();
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  const auto* const found = std::find_if(std::begin(kServers), std::end(kServers),
                                         [&](const Server& each) { return each.name == name; });
  return found == std::end(kServers) ? nullptr : found;
}

}  // namespace

std::string left_behind_text(const Words& command, std::optional<int> left, bool succeeded) {
  const Server* const server = find_server(command);
  if (left.value_or(0) > 0) {
    const bool one = *left == 1;
    const std::string text = fmt::format("{} process{} that the command left running {} ended",
                                         *left, one ? "" : "es", one ? "was" : "were");
    if (!server) return text + ", as the lease ends with the command";
    return fmt::format("{}, as the lease ends with {}; write {}", text, server->name,
                       server->instead);
  }
  if (!server || !succeeded || !server->hands_over(command)) return {};
  return fmt::format("{} hands its work to a server, which {}; write {}", server->name,
                     left ? "is not in the lease" : "is not in the lease, or ends with the command",
                     server->instead);
}

}  // namespace gpurota::cli
