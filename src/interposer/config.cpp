#include "interposer/config.h"

#include "abi/env.h"
#include "interposer/sys.h"

#include <atomic>

#include <stdlib.h>
#include <string.h>

unsigned char gpurota_mode = gpurota::interposer::kModeUnread;

namespace gpurota::interposer {
namespace {

Config g_config;
std::atomic<uint32_t> g_reading{0};

// Digits of `text`, all of them; false for anything else or more than 64 bits.
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

// A lease that cannot be read is still a lease: it is sent as 0, refused by the daemon, and so the
// program gets no memory instead of all of it.
unsigned char read_environment() {
  const char* lease = secure_getenv(GPUROTA_ENV_LEASE);
  if (lease == nullptr || *lease == '\0') return kModeInactive;
  if (*lease == 'L' || *lease == 'l') ++lease;
  if (!parse_number(lease, &g_config.lease)) g_config.lease = 0;
  const char* token = secure_getenv(GPUROTA_ENV_TOKEN);
  if (token != nullptr && strlen(token) == GPUROTA_TOKEN_CHARS) {
    memcpy(g_config.token, token, GPUROTA_TOKEN_CHARS);
  }
  const char* path = secure_getenv(GPUROTA_ENV_SOCKET);
  if (path != nullptr) copy_text(g_config.socket_path, sizeof(g_config.socket_path), path);
  read_debug(secure_getenv(GPUROTA_ENV_DEBUG));
  const char* wait = secure_getenv(GPUROTA_ENV_WAIT_MS);
  uint64_t wait_ms = 0;
  if (wait != nullptr && parse_number(wait, &wait_ms)) {
    constexpr uint64_t kHour = 3600 * 1000;
    g_config.wait_ms = static_cast<int64_t>(wait_ms < kHour ? wait_ms : kHour);
  }
  return kModeActive;
}

unsigned char mode() { return __atomic_load_n(&gpurota_mode, __ATOMIC_ACQUIRE); }

__attribute__((constructor)) void on_load() { active(); }

}  // namespace

bool active() {
  const unsigned char known = mode();
  if (known != kModeUnread) return known == kModeActive;
  uint32_t nobody = 0;
  if (g_reading.compare_exchange_strong(nobody, 1)) {
    __atomic_store_n(&gpurota_mode, read_environment(), __ATOMIC_RELEASE);
  }
  ErrnoGuard guard;
  while (mode() == kModeUnread) sleep_ms(1);
  return mode() == kModeActive;
}

const Config& config() { return g_config; }

}  // namespace gpurota::interposer
