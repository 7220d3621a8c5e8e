// NVML's figure for the processes of the stress program: an independent check of the limit. Called
// by the parent process only; never initialises the driver.
#pragma once

#include "abi/nvml_abi.h"

#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace gpurota::stress {

// The sum that NVML shows for these processes, on the first GPU that lists one of them.
class Nvml {
 public:
  explicit Nvml(std::vector<pid_t> pids);
  std::uint64_t sum() const;

 private:
  std::vector<pid_t> pids_;
  std::vector<nvmlDevice_t> devices_;
  nvmlReturn_t (*processes_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*) = nullptr;
};

}  // namespace gpurota::stress
