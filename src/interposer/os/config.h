// The settings of the environment, copied when the library is loaded (or at the first driver
// lookup, should that come first): a program that clears its environment later stays under its
// lease.
//
// Read by every thread after that, without a lock. Not wiped by fork: a child is under the same
// lease.
#pragma once

#include "abi/limits.h"

#include <cstdint>

// 0: the environment is not read yet; 1: no lease, the library does nothing; 2: a lease; 3: none in
// the environment, and the driver has not been used; 4: none yet, cuInit is to ask for one.
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
  // The program's wish, where there is no lease: as in gpurota_msg_automatic, without a NUL where
  // it is too long.
  bool for_container = false;
  char memory[16] = {};
  char gpus[8] = {};
  char swap[8] = {};
  char priority[8] = {};
  int64_t wait_ms = 30000;  // how long growth waits for a daemon that is away
};

// Reads the environment, if that has not been done yet. Whether it names a lease.
bool has_lease();
// True if there is a lease, or may be one soon: hooks are to be handed out. The first call without
// a lease looks whether the site gives them to such programs (one system call).
bool active();
// Whether the lease is still to be asked for, or the daemon to be told of (account/automatic.h).
inline bool lease_pending() {
  return __atomic_load_n(&gpurota_mode, __ATOMIC_ACQUIRE) == kModeAutomatic;
}
// The answer to the question: ends kModeAutomatic. With Link::mutex held.
void take_lease(uint64_t lease, const char (&token)[GPUROTA_TOKEN_CHARS]);
void go_without_lease();

// Valid once active() has returned true.
const Config& config();

}  // namespace gpurota::interposer
