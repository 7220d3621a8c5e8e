// /proc/PID/stat, as far as gpurota needs it: who is whose child, and which process this is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace gpurota {

struct ProcStat {
  pid_t pid = 0;
  char state = '?';  // 'Z' and 'X' are dead
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;  // clock ticks since boot
};

// Robust against a program name with ')', spaces or newlines in it, which any user can choose.
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// Reads it; nullopt if there is no such process or it is hidden from us.
std::optional<ProcStat> read_proc_stat(pid_t pid);

struct ProcUids {
  uid_t real = 0;
  uid_t effective = 0;
};

// Of /proc/PID/status; nullopt if there is no such process or it is hidden from us.
std::optional<ProcUids> parse_proc_uids(std::string_view status);
std::optional<ProcUids> read_proc_uids(pid_t pid);

}  // namespace gpurota
