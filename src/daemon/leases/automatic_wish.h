// Reads the wishes of a program that asks for a lease by itself, which are variables of its
// environment, and puts those that the site allows into a request. Pure; used on the state thread.
#pragma once

#include "abi/wire.h"
#include "base/result.h"
#include "config/config.h"
#include "core/gpu.h"
#include "daemon/leases/lease_entry.h"

#include <string>
#include <vector>

namespace gpurota::daemon {

// The values of environment variables: foreign bytes. Empty: the variable is not set.
struct AutomaticWish {
  bool container = false;  // the lease is for the whole container, which gets no GPU without it
  std::string memory;
  std::string gpus;
  std::string swap;
  std::string priority;
};

AutomaticWish read_wish(const gpurota_msg_automatic& question);

// [automatic] decides everything that the program does not ask for. An error of kInvalid or kLimit
// names the variable and the setting.
Result<void> take_wish(const AutomaticWish& wish, const config::Automatic& site,
                       const std::vector<GpuInfo>& gpus, AcquireRequest& request);

}  // namespace gpurota::daemon
