// The parts of /proc/PID/stat and status that gpurota needs: state, parent, start time and uids.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace gpurota {

struct ProcStat {
  pid_t pid = 0;
  char state = '?';  // 'Z' and 'X': dead
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;  // clock ticks since boot
};

// Robust against a program name with ')', spaces or newlines; any user can choose such a name.
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// Reads /proc/PID/stat; nullopt if there is no such process or it is hidden from us.
std::optional<ProcStat> read_proc_stat(pid_t pid);

struct ProcUids {
  uid_t real = 0;
  uid_t effective = 0;
};

// From /proc/PID/status. Parsing: nullopt if the text has no uids. Reading: nullopt if there is no
// such process or it is hidden from us.
std::optional<ProcUids> parse_proc_uids(std::string_view status);
std::optional<ProcUids> read_proc_uids(pid_t pid);

}  // namespace gpurota
