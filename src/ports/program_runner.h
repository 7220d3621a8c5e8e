// Runs short programs with a text on standard input, and reports their end: the programs of
// [notify], and gpurota-park. Behind an interface so that tests need no processes. State thread
// only.
#pragma once

#include "core/time.h"

#include <functional>
#include <string>
#include <vector>

namespace gpurota::ports {

struct Program {
  std::vector<std::string> argv;  // argv[0] is an absolute path; run without a shell
  std::string input;              // all of its standard input
  std::string user;               // the user that runs it, by name, if we are root; else our own
  Duration time_limit{};          // it is killed after this time
  std::string purpose = "a notice to a user";  // for systemd's list of units
  bool keeps_output = false;                   // ProgramEnd::output gets its standard output
  bool own_environment = false;                // a child has the environment of this process
  bool finishes = false;                       // it is not killed when the runner ends
};

struct ProgramEnd {
  bool started = true;     // else `complaint` says why not
  int code = 0;            // exit code
  int signal = 0;          // that ended it
  bool timed_out = false;  // killed at its time limit
  // If `started`: the program's first line on standard error that is not empty. The line may have
  // any bytes, and may be cut.
  std::string complaint;
  std::string output{};  // of a program that keeps_output; may be cut
  Duration took{};

  bool is_good() const { return started && code == 0 && signal == 0 && !timed_out; }
};

class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;
  // Returns at once. `done` is called once, on the loop and never from within run(). The destructor
  // kills programs that still run, except those that finish, and their `done` is not called.
  virtual void run(const Program& program, std::function<void(const ProgramEnd&)> done) = 0;
};

}  // namespace gpurota::ports
