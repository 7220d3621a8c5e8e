// Messages between the small daemon of this test and its tenants, over a socket pair, one packet
// for each.
#pragma once

#include <cstdint>

namespace turns_test {

enum class Kind : std::uint32_t {
  // to the daemon
  kStatus,
  kGrow,
  kEvicted,
  kRestored,
  kResult,  // `bytes`: checks made; `busy`: an error occurred
  // to the tenant
  kGate,
  kGranted,
  kRefused,
  kEvict,
  kRestore,
  kFinish,
};

struct Message {
  Kind kind;
  std::uint32_t seq;
  std::uint32_t order;  // of a gate
  std::uint32_t waiting;
  std::uint32_t busy;
  std::uint32_t failed;
  std::uint64_t bytes;
  std::uint64_t returned;
};

struct TenantOptions {
  int socket = -1;
  std::uint64_t memory = 0;
  double work_seconds = 0;  // between pauses; 0: never pauses
  double pause_seconds = 0;
  unsigned seed = 1;
};
// The whole run of a tenant, in a process of its own. Returns its exit code.
int run_tenant(const TenantOptions& options);

}  // namespace turns_test
