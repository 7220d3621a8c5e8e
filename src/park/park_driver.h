// The driver's calls that park other processes, found by dlopen. One thread, unless a call hangs.
#pragma once

#include "abi/cuda_checkpoint.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::park {

// The result of a call. Empty: the call has not ended by its deadline, and continues in a thread
// that cannot be stopped: the program should report and end.
using Answer = std::optional<CUresult>;

class ParkDriver {
 public:
  // Loads the driver from this file (a name without a folder: where the loader finds it), and
  // initialises it. False: `error` says why not.
  bool load(const std::string& file, std::chrono::milliseconds patience, std::string* error);

  Answer state(pid_t pid, CUprocessState* state) const;
  Answer lock(pid_t pid, std::chrono::milliseconds timeout) const;
  Answer checkpoint(pid_t pid, std::chrono::milliseconds patience) const;
  Answer restore(pid_t pid, std::chrono::milliseconds patience) const;
  Answer unlock(pid_t pid) const;

  // "NOT_READY"; "timed out" for an answer that did not come.
  std::string name_of(const Answer& answer) const;

 private:
  CUresult (*init_)(unsigned) = nullptr;
  CUresult (*error_name_)(CUresult, const char**) = nullptr;
  CUresult (*state_)(int, CUprocessState*) = nullptr;
  CUresult (*lock_)(int, CUcheckpointLockArgs*) = nullptr;
  CUresult (*checkpoint_)(int, CUcheckpointCheckpointArgs*) = nullptr;
  CUresult (*restore_)(int, CUcheckpointRestoreArgs*) = nullptr;
  CUresult (*unlock_)(int, CUcheckpointUnlockArgs*) = nullptr;
};

}  // namespace gpurota::park
