// Asks many machines the same question in parallel, each through an ssh process. Starts the
// processes and waits for all of them; one thread.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace gpurota::cli {

struct AskLimits {
  std::chrono::milliseconds each{5000};      // from the start of its ssh
  std::size_t at_once = 32;                  // ssh processes at a time
  std::size_t bytes = std::size_t{4} << 20;  // of one answer
};

// The result of one ssh.
struct Told {
  bool in_time = true;
  bool too_long = false;
  int status = 0;      // from waitpid, if it ended by itself
  std::string out;     // at most `bytes`
  std::string errors;  // the end of its standard error
};

// An answer, or why there is none: one line, which may contain untrusted text.
struct HostAnswer {
  std::string host;
  Result<std::string> text;
};

// The meaning of `told` for a person. Pure.
Result<std::string> read_told(const Told& told, const AskLimits& limits);

// In the order of `hosts`. `line`: the command line for the shell there.
std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const std::string& line,
                                  const AskLimits& limits = {});

}  // namespace gpurota::cli
