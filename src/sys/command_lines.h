// The command lines of processes, as far as they are known. State thread only; nothing here waits.
//
// Reading /proc/PID/cmdline takes the lock of that process's address space, which whoever runs in
// it can hold as long as they like. So workers read, one for each user (user_workers.h), and what
// was read last is told meanwhile. Bounded: who has most processes that were asked about is
// forgotten first.
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

// Of the process that started at `start_ticks`, at most kMostCommandBytes; nullopt: it is gone, or
// hidden from us. Waits for that process: on a worker only.
std::optional<std::vector<std::string>> read_command_line(pid_t pid, std::uint64_t start_ticks);

class CommandLines {
 public:
  static constexpr std::size_t kMostProcesses = 4096;
  // A question that comes sooner again gets the same answer: a process may change its title or
  // execute another program.
  static constexpr Duration kFresh = std::chrono::seconds(5);
  // A first read that takes longer is not worth waiting for.
  static constexpr Duration kPatience = std::chrono::milliseconds(100);

  // Runs on a worker, and may outlive us there.
  using Read = std::function<std::optional<std::vector<std::string>>(pid_t, std::uint64_t)>;

  // `loop` must outlive this.
  explicit CommandLines(ports::EventLoop& loop, Read read = read_command_line);

  // As ports::Processes::command_of, of what has this pid, user and start time.
  Result<std::vector<std::string>> of(const ports::ProcessInfo& process);
  // Counts up whenever of() would say something else than before.
  std::uint64_t changes() const { return changes_; }

 private:
  struct Known {
    uid_t uid = 0;
    std::uint64_t start_ticks = 0;
    bool reading = false;
    bool answered = false;                          // once at least
    std::optional<std::vector<std::string>> words;  // as last read
    std::optional<TimePoint> asked;                 // for the last reading
    TimePoint wanted{};                             // by somebody
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
