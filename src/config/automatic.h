// Settings of automatic leases: a part of config.h. Plain data.
#pragma once

#include "base/bytes.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::config {

// [automatic]: leases for programs that preload libgpurota.so and have no lease
// (docs/design/automatic-leases.md).
struct Automatic {
  enum class WhenFull {
    kRefuse,     // the program sees no GPU
    kUnmanaged,  // the program sees all GPUs, and holds memory without a lease
  };

  bool enabled = false;
  // Account names, uids, or "@group". Empty: everybody. Other users' programs run without a lease.
  std::vector<std::string> users;
  SizeSpec memory;                     // of each GPU; always set if enabled
  std::optional<SizeSpec> soft_limit;  // of each GPU
  int gpus = 1;
  // The most that a program may request in its environment. Unset, or zero: no more than `memory`
  // and `gpus`.
  std::optional<SizeSpec> max_memory;
  int max_gpus = 0;
  bool swap = false;  // turns
  WhenFull when_full = WhenFull::kRefuse;

  bool operator==(const Automatic&) const = default;
};

}  // namespace gpurota::config
