// The command's first process: forked, held until the daemon knows it, then executed.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "cli/run/signals.h"

#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::cli {

struct CommandLine {
  std::string file;                    // from find_command
  std::vector<std::string> arguments;  // argv, as typed
  std::vector<std::string> variables;  // "NAME=value"
};

class Child {
 public:
  // Forks. The child waits, and ends if this process ends before execute(). The child stays in our
  // process group and session, and will run with the signals in `signals` blocked and ignored.
  static Result<Child> fork(const CommandLine& command, const ProgramSignals& signals);

  pid_t pid() const { return pid_; }
  // Lets the child execute the command. Returns 0, or the errno of execve.
  int execute();
  // Instead of execute(): ends and reaps the child.
  void abandon();

 private:
  Child(pid_t pid, Fd gate, Fd report)
      : pid_(pid), gate_(std::move(gate)), report_(std::move(report)) {}

  pid_t pid_;
  Fd gate_;    // a byte: execute; end of file: exit
  Fd report_;  // errno of a failed execve; end of file: success
};

}  // namespace gpurota::cli
