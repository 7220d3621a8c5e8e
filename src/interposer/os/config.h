// Settings from the environment, copied when the library is loaded (or at the first driver lookup,
// should that come first): a program that clears its environment later stays under its lease.
//
// Every thread reads the copy without a lock. A fork does not wipe the copy: a child is under the
// same lease.
#pragma once

#include "abi/limits.h"

#include <cstdint>

// 0: the environment is not read yet; 1: no lease, the library does nothing; 2: a lease; 3: no
// lease in the environment, and the driver has not been used; 4: cuInit must first ask for a lease,
// or report its lease.
extern "C" __attribute__((visibility("hidden"))) unsigned char gpurota_mode;

namespace gpurota::interposer {

inline constexpr unsigned char kModeUnread = 0;
inline constexpr unsigned char kModeInactive = 1;
inline constexpr unsigned char kModeActive = 2;
inline constexpr unsigned char kModeUndecided = 3;
inline constexpr unsigned char kModeAutomatic = 4;

struct Config {
  uint64_t lease = 0;  // 0: none, or not known yet
  char token[GPUROTA_TOKEN_CHARS] = {};
  char socket_path[108] = {};  // as long as a Unix socket's path can be
  char debug_path[256] = {};   // "": explanations go to stderr
  bool debug = false;
  // The request of a program that has no lease, as in gpurota_msg_automatic. A text that is too
  // long has no NUL.
  bool for_container = false;
  char memory[16] = {};
  char gpus[8] = {};
  char swap[8] = {};
  char priority[8] = {};
  int64_t wait_ms = 30000;  // how long a request for memory waits for a daemon that is away
};

// Reads the environment if that has not been done. Returns whether the environment names a lease.
bool has_lease();
// True if there is a lease, or may be one soon: lookups must then return hooks. The first call
// without a lease checks whether the site gives leases to such programs (one system call).
bool active();
// Whether the daemon must still be asked for a lease, or be told of the lease
// (account/automatic.h).
inline bool lease_pending() {
  return __atomic_load_n(&gpurota_mode, __ATOMIC_ACQUIRE) == kModeAutomatic;
}
// take_lease() and go_without_lease() store the daemon's answer and end kModeAutomatic. With
// Link::mutex held.
void take_lease(uint64_t lease, const char (&token)[GPUROTA_TOKEN_CHARS]);
void go_without_lease();

// Valid once active() has returned true.
const Config& config();

}  // namespace gpurota::interposer
