// How gpurota-park (src/park/main.cpp) is called, and how the lines that it prints are read. Pure.
#pragma once

#include "base/bytes.h"
#include "ports/process_id.h"
#include "ports/program_runner.h"

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::daemon {

struct ParkProgram {
  std::string file;     // gpurota-park; empty: not installed
  std::string lock;     // the file that lets one gpurota-park run at a time
  std::string library;  // the driver's; empty: where the loader finds it
  std::string user;     // that runs it
};

// `action`: park or unpark. `memory`: what all the processes together have.
ports::Program park_call(const ParkProgram& program, const std::string& action,
                         const std::vector<ports::ProcessId>& processes, Bytes memory);

struct ParkReport {
  bool good = false;
  std::string why;                     // why not
  std::map<pid_t, std::string> state;  // after a failure, of each process: "running", "gone", …
  double seconds = 0;                  // of all steps
  bool tried = true;                   // false: gpurota-park has left everything as it was

  // Whether no process was left locked or parked.
  bool all_run() const;
};
ParkReport read_park_report(const ports::ProgramEnd& end);

}  // namespace gpurota::daemon
