// gpurota-sim: runs commands on a simulated machine, shows it and changes it while it runs.
#include "sim/launcher/control.h"
#include "sim/launcher/failure.h"
#include "sim/launcher/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

constexpr const char* kUsage =
    "usage: gpurota-sim [--dir DIR [--shared]] MACHINE -- COMMAND [ARGUMENT…]\n"
    "       gpurota-sim list\n"
    "       gpurota-sim show [--dir DIR]\n"
    "       gpurota-sim set [--dir DIR] KEY=VALUE…\n"
    "       gpurota-sim --show-unsupported [--dir DIR]\n"
    "\n"
    "Runs COMMAND on a machine with simulated GPUs. MACHINE is the name of an installed machine\n"
    "(`gpurota-sim list`) or a path to a TOML file. With --dir the machine is kept in DIR and\n"
    "shared with others that name it; MACHINE is then needed only to make it; with --shared it is\n"
    "made for all users. Inside, or with --dir, `set` changes the machine while it runs: see\n"
    "gpurota-sim(1).\n";

int usage_error(const std::string& what) {
  fmt::print(stderr, "gpurota-sim: {}\n{}", what, kUsage);
  return gpurota::sim::kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words;
  std::vector<char*> command;
  std::string dir;
  bool shows_unsupported = false, for_all = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {
      command.assign(argv + i + 1, argv + argc);
      if (command.empty()) return usage_error("there is no command after --");
      break;
    }
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (word == "--version") {
      fmt::print("gpurota-sim {}\n", GPUROTA_VERSION);
      return 0;
    }
    if (word == "--dir") {
      if (++i == argc) return usage_error("--dir needs a directory");
      dir = argv[i];
    } else if (word.rfind("--dir=", 0) == 0) {
      dir = word.substr(6);
    } else if (word == "--shared") {
      for_all = true;
    } else if (word == "--show-unsupported") {
      shows_unsupported = true;
    } else if (word.size() > 1 && word[0] == '-') {
      return usage_error("there is no option " + word);
    } else {
      words.push_back(word);
    }
  }
  if (!command.empty()) {
    if (words.size() > 1) return usage_error("more than one machine");
    if (words.empty() && dir.empty()) return usage_error("no machine");
    if (for_all && dir.empty()) return usage_error("--shared needs --dir");
    command.push_back(nullptr);
    return gpurota::sim::run_command(words.empty() ? "" : words[0], dir, for_all, command.data());
  }
  if (shows_unsupported && words.empty()) return gpurota::sim::show_unsupported(dir);
  if (words.empty()) return usage_error("nothing to do");
  if (words[0] == "list") return gpurota::sim::list_machines();
  if (words[0] == "show") return gpurota::sim::show_machine(dir);
  if (words[0] == "set") {
    return gpurota::sim::change_machine(dir, {words.begin() + 1, words.end()});
  }
  return usage_error("no command: write `gpurota-sim " + words[0] + " -- COMMAND`");
}
