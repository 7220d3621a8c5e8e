// Shared by the parts of driver_parks: the functions of the driver that park a process, and a page
// of memory between the measuring process and the parked process.
#pragma once

#include "tests/driver/captures/functions.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace parks {

// The types of the driver's arguments, as cuda.h of CUDA 13.0 declares them.
struct LockArgs {
  unsigned timeout_ms;
  unsigned reserved0;
  std::uint64_t reserved1[7];
};
struct PlainArgs {
  std::uint64_t reserved[8];
};
struct RestoreArgs {
  void* gpu_pairs;
  unsigned gpu_pair_count;
  char reserved[52 - sizeof(void*)];
  std::uint64_t reserved1;
};
static_assert(sizeof(LockArgs) == 64 && sizeof(PlainArgs) == 64 && sizeof(RestoreArgs) == 64);

struct ParkFunctions {
  CUresult (*lock)(int pid, LockArgs* args);
  CUresult (*checkpoint)(int pid, PlainArgs* args);
  CUresult (*restore)(int pid, RestoreArgs* args);
  CUresult (*unlock)(int pid, PlainArgs* args);
};

// The step that the measuring process has reached.
enum Phase : std::uint32_t { kRuns, kLocking, kLocked, kCheckpointed, kRestored, kUnlocked, kEnd };
inline constexpr std::uint32_t kPhases = kEnd + 1;

// Shared by the two processes. The parked process writes all members except `phase`.
struct Page {
  std::atomic<std::uint32_t> phase;
  std::atomic<std::uint32_t> ready;  // 1: the call or habit is set up; 2: it cannot be set up
  // Calls that ended, counted in the phase in which they began.
  std::atomic<std::uint64_t> calls[kPhases];
  std::atomic<std::uint64_t> crossed[kPhases];  // how many of these ended in a later phase
  std::atomic<std::int32_t> result[kPhases];    // of the last of these calls
  std::atomic<std::uint32_t> done;              // 1: all is right; 2: a wrong value
};

// Runs in the parked process: makes the call or keeps the habit with this index until the page says
// kEnd, and checks the memory that the process holds. Returns an exit code.
int call_without_pause(Page& page, std::size_t index);
int keep_a_habit(Page& page, std::size_t index);

// The names of all calls, and of all habits.
std::vector<std::string> names_of_calls();
std::vector<std::string> names_of_habits();

}  // namespace parks
