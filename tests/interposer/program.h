// A program under test, with an environment of its own. The test and the program exchange lines.
#pragma once

#include "base/fd.h"

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::interposer_test {

class Program {
 public:
  // `extra` is added to this process's environment; an empty value removes the variable.
  Program(const std::vector<std::string>& argv, const std::map<std::string, std::string>& extra);
  ~Program();  // kills it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void write_line(const std::string& line);
  std::string read_line();  // "" at the end of its output
  std::string read_all();
  // Waits for the program's end: the exit code, or 128 + the signal.
  int wait();
  void signal(int number) const;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  Fd in_;
  Fd out_;
};

}  // namespace gpurota::interposer_test
