#include "interposer/os/config.h"

#include "abi/env.h"
#include "interposer/os/notice.h"
#include "interposer/os/sys.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <sys/auxv.h>

unsigned char gpurota_mode = gpurota::interposer::kModeUnread;

namespace gpurota::interposer {
namespace {

Config g_config;
char g_marker[128] = {};  // the path that exists if the site gives leases
std::atomic<uint32_t> g_reading{0};

// Parses `text`, which must have digits only. False for anything else or more than 64 bits.
bool parse_number(const char* text, uint64_t* out) {
  if (*text == '\0') return false;
  uint64_t value = 0;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    const auto digit = static_cast<uint64_t>(*text - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

bool copy_text(char* to, size_t room, const char* from) {
  const size_t length = strlen(from);
  if (length >= room) return false;
  memcpy(to, from, length + 1);
  return true;
}

void read_debug(const char* value) {
  if (value == nullptr || *value == '\0' || strcmp(value, "0") == 0) return;
  g_config.debug =
      strcmp(value, "1") == 0 || copy_text(g_config.debug_path, sizeof(g_config.debug_path), value);
}

// Writes "DIRECTORY/NAME"; DIRECTORY is the runtime directory of the daemon for programs without a
// lease. False if it is too long.
bool place_in_runtime_dir(char* out, size_t room, const char* name) {
  const char* dir = secure_getenv(GPUROTA_ENV_RUNTIME_DIR);
  if (dir == nullptr || *dir != '/') dir = GPUROTA_SYSTEM_RUNTIME_DIR;
  const size_t length = strlen(dir);
  if (length + 1 + strlen(name) >= room) return false;
  memcpy(out, dir, length);
  out[length] = '/';
  return copy_text(out + length + 1, room - length - 1, name);
}

template <size_t kSize>
void copy_wish(char (&to)[kSize], const char* name) {
  const char* const value = secure_getenv(name);
  if (value == nullptr) return;
  const size_t length = strlen(value);
  memcpy(to, value, length < kSize ? length : kSize);
}

void read_wishes() {
  copy_wish(g_config.memory, GPUROTA_ENV_MEMORY);
  copy_wish(g_config.gpus, GPUROTA_ENV_GPUS);
  copy_wish(g_config.swap, GPUROTA_ENV_SWAP);
  copy_wish(g_config.priority, GPUROTA_ENV_PRIORITY);
  const char* const container = secure_getenv(GPUROTA_ENV_CONTAINER);
  g_config.for_container = container != nullptr && strcmp(container, "1") == 0;
}

// Reads the settings of a program without a lease. Whether the site gives leases to such programs
// is checked later, because most programs never use CUDA. A program with more rights than its user
// never gets such a lease.
unsigned char read_without_lease() {
  if (getauxval(AT_SECURE) != 0) return kModeInactive;
  const bool known = place_in_runtime_dir(g_config.socket_path, sizeof(g_config.socket_path),
                                          GPUROTA_TENANT_SOCKET_NAME) &&
                     place_in_runtime_dir(g_marker, sizeof(g_marker), GPUROTA_AUTOMATIC_MARKER);
  read_wishes();
  // A container that was given the device `any` has a lease or no GPU, even without a daemon.
  if (g_config.for_container) return kModeAutomatic;
  return known ? kModeUndecided : kModeInactive;
}

// A lease that cannot be parsed is sent as 0. The daemon may still find the lease by its token (a
// pod's). Otherwise the daemon refuses, and the program gets no memory rather than all memory.
unsigned char read_lease(const char* lease) {
  if (*lease == 'L' || *lease == 'l') ++lease;
  if (!parse_number(lease, &g_config.lease)) g_config.lease = 0;
  const char* token = secure_getenv(GPUROTA_ENV_TOKEN);
  if (token != nullptr && strlen(token) == GPUROTA_TOKEN_CHARS) {
    memcpy(g_config.token, token, GPUROTA_TOKEN_CHARS);
  }
  const char* path = secure_getenv(GPUROTA_ENV_SOCKET);
  if (path == nullptr || *path == '\0') return kModeInactive;  // whole GPUs
  copy_text(g_config.socket_path, sizeof(g_config.socket_path), path);
  const char* whole = secure_getenv(GPUROTA_ENV_WHOLE);
  const bool has_all = whole != nullptr && strcmp(whole, "1") == 0;
  return has_all ? kModeAutomatic : kModeActive;
}

unsigned char read_environment() {
  remember_standard_error();
  read_debug(secure_getenv(GPUROTA_ENV_DEBUG));
  const char* wait = secure_getenv(GPUROTA_ENV_WAIT_MS);
  uint64_t wait_ms = 0;
  if (wait != nullptr && parse_number(wait, &wait_ms)) {
    constexpr uint64_t kHour = 3600 * uint64_t{1000};
    g_config.wait_ms = static_cast<int64_t>(wait_ms < kHour ? wait_ms : kHour);
  }
  const char* lease = secure_getenv(GPUROTA_ENV_LEASE);
  return lease == nullptr || *lease == '\0' ? read_without_lease() : read_lease(lease);
}

unsigned char mode() { return __atomic_load_n(&gpurota_mode, __ATOMIC_ACQUIRE); }

void read_once() {
  if (mode() != kModeUnread) return;
  uint32_t nobody = 0;
  if (g_reading.compare_exchange_strong(nobody, 1)) {
    __atomic_store_n(&gpurota_mode, read_environment(), __ATOMIC_RELEASE);
  }
  ErrnoGuard guard;
  while (mode() == kModeUnread) sleep_ms(1);
}

// Called when the program first uses the driver.
void decide() {
  ErrnoGuard guard;
  unsigned char undecided = kModeUndecided;
  const bool given = ::syscall(SYS_faccessat, AT_FDCWD, g_marker, F_OK) == 0;
  __atomic_compare_exchange_n(&gpurota_mode, &undecided, given ? kModeAutomatic : kModeInactive,
                              false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

}  // namespace

bool has_lease() {
  read_once();
  return mode() == kModeActive;
}

bool active() {
  const unsigned char known = mode();
  if (known == kModeActive) return true;
  if (known == kModeInactive) return false;
  read_once();
  if (mode() == kModeUndecided) decide();
  return mode() != kModeInactive;
}

void take_lease(uint64_t lease, const char (&token)[GPUROTA_TOKEN_CHARS]) {
  g_config.lease = lease;
  memcpy(g_config.token, token, sizeof(g_config.token));
  __atomic_store_n(&gpurota_mode, kModeActive, __ATOMIC_RELEASE);
}

void go_without_lease() { __atomic_store_n(&gpurota_mode, kModeInactive, __ATOMIC_RELEASE); }

const Config& config() { return g_config; }

}  // namespace gpurota::interposer
