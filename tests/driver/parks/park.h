// Shared by the parts of driver_parks: the functions of the driver that park a process, and a page
// of memory between the measuring process and the parked process.
#pragma once

#include "abi/cuda_checkpoint.h"
#include "tests/driver/captures/functions.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace parks {

struct ParkFunctions {
  CUresult (*lock)(int pid, CUcheckpointLockArgs* args);
  CUresult (*checkpoint)(int pid, CUcheckpointCheckpointArgs* args);
  CUresult (*restore)(int pid, CUcheckpointRestoreArgs* args);
  CUresult (*unlock)(int pid, CUcheckpointUnlockArgs* args);
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
