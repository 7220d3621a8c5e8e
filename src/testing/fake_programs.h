// Programs that run until the test ends them. Single-threaded.
#pragma once

#include "ports/program_runner.h"

#include <functional>
#include <utility>
#include <vector>

namespace gpurota::testing {

class FakePrograms final : public ports::ProgramRunner {
 public:
  struct Run {
    ports::Program program;
    std::function<void(const ports::ProgramEnd&)> done;
  };

  void run(const ports::Program& program,
           std::function<void(const ports::ProgramEnd&)> done) override {
    begun.push_back(program);
    running.push_back({program, std::move(done)});
  }
  // Ends the longest-running program with this result.
  void end(const ports::ProgramEnd& how = {}) {
    const Run run = std::move(running.front());
    running.erase(running.begin());
    run.done(how);
  }

  std::vector<ports::Program> begun;  // all so far
  std::vector<Run> running;
};

}  // namespace gpurota::testing
