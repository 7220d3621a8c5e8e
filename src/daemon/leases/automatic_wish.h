// The wish of a program that asks for a lease by itself, from its environment, and the part of it
// that the site gives. Pure; used on the state thread.
#pragma once

#include "abi/wire.h"
#include "base/result.h"
#include "config/config.h"
#include "core/gpu.h"
#include "daemon/leases/lease_entry.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// As the environment has it: foreign bytes. Empty: it says nothing.
struct AutomaticWish {
  bool container =
      false;  // the lease is for its whole container, and without one it is to have no GPU
  std::string memory;
  std::string gpus;
  std::string swap;
  std::string priority;
};

AutomaticWish read_wish(const gpurota_msg_automatic& question);

// Anything not asked for is as [automatic] says. kInvalid, kLimit: names the variable and the
// setting.
Result<void> take_wish(const AutomaticWish& wish, const config::Automatic& site,
                       const std::vector<GpuInfo>& gpus, AcquireRequest& request);

}  // namespace gpurota::daemon
