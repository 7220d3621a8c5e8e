// Asks many machines the same question at once, each by an ssh of its own. Starts processes and
// waits for all of them; one thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace gpurota::cli {

struct AskLimits {
  std::chrono::milliseconds each{5000};      // from the start of its ssh
  std::size_t at_once = 32;                  // ssh at a time
  std::size_t bytes = std::size_t{4} << 20;  // of one answer
};

// The result of one ssh.
struct Told {
  bool in_time = true;
  bool too_long = false;
  int status = 0;      // as of waitpid, if it ended by itself
  std::string out;     // at most `bytes`
  std::string errors;  // the end of what it printed on standard error
};

// An answer, or why there is none: one line, which may hold foreign text.
struct HostAnswer {
  std::string host;
  Result<std::string> text;
};

// Pure: what `told` means for a person.
Result<std::string> read_told(const Told& told, const AskLimits& limits);

// In the order of `hosts`. `line`: for the shell there.
std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const std::string& line,
                                  const AskLimits& limits = {});

}  // namespace gpurota::cli
