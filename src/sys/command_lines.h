// The known command lines of processes. State thread only; nothing here blocks.
//
// Reading /proc/PID/cmdline takes the lock of that process's address space, which the process
// itself can hold as long as it likes. So workers read, one for each user (user_workers.h), and
// meanwhile callers get the last text read. The number of known processes is bounded: the user with
// the most of them loses one first.
#pragma once

#include "base/result.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "sys/user_workers.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpurota::sys {

// The command line of the process that started at `start_ticks`, at most kMostCommandBytes; nullopt
// if the process has ended or is hidden from us. Blocks on that process: call on a worker only.
std::optional<std::vector<std::string>> read_command_line(pid_t pid, std::uint64_t start_ticks);

class CommandLines {
 public:
  static constexpr std::size_t kMostProcesses = 4096;
  // A line is not read again for this long, and is read again after that because a process may
  // change its title or execute another program.
  static constexpr Duration kFresh = std::chrono::seconds(5);
  // A first read may keep the caller waiting for this long.
  static constexpr Duration kPatience = std::chrono::milliseconds(100);

  // Runs on a worker, where it may outlive this object.
  using Read = std::function<std::optional<std::vector<std::string>>(pid_t, std::uint64_t)>;

  // `loop` must outlive this object.
  explicit CommandLines(ports::EventLoop& loop, Read read = read_command_line);

  // Like ports::Processes::command_of, for the process with this pid, user and start time.
  Result<std::vector<std::string>> of(const ports::ProcessInfo& process);
  // Incremented whenever the result of of() changes.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Known {
    uid_t uid = 0;
    std::uint64_t start_ticks = 0;
    bool reading = false;
    bool answered = false;                          // at least once
    std::optional<std::vector<std::string>> words;  // as last read
    std::optional<TimePoint> asked;                 // when the last read was requested
    TimePoint wanted{};                             // when a caller last wanted it
  };

  Known* known_of(const ports::ProcessInfo& process);
  void forget_unwanted();
  bool make_room(uid_t uid);
  void read(const ports::ProcessInfo& process, Known& known);
  void take(pid_t pid, std::uint64_t start_ticks, std::optional<std::vector<std::string>> words);

  ports::EventLoop& loop_;
  const Read read_;
  std::map<pid_t, Known> known_;
  std::uint64_t changes_ = 0;
  UserWorkers workers_;
};

}  // namespace gpurota::sys
