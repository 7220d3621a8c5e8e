#include "interposer/os/notice.h"

#include "abi/env.h"
#include "interposer/os/sys.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpurota::interposer {
namespace {

std::atomic<bool> g_silent{true};
std::atomic<uint32_t> g_said{0};  // a bit for each notice
dev_t g_device = 0;
ino_t g_inode = 0;

bool is_the_same() {
  struct stat now {};
  return sys_fstat(2, &now) == 0 && now.st_dev == g_device && now.st_ino == g_inode;
}

// Checked first: a pipe that nobody reads, or a stopped terminal, must not block the program.
bool takes_a_line() {
  pollfd waiting{2, POLLOUT, 0};
  const timespec at_once{};
  return ::syscall(SYS_ppoll, &waiting, 1, &at_once, nullptr, 0) == 1 && waiting.revents == POLLOUT;
}

}  // namespace

void remember_standard_error() {
  struct stat now {};
  if (sys_fstat(2, &now) != 0) return;
  g_device = now.st_dev;
  g_inode = now.st_ino;
  const char* const wanted = secure_getenv(GPUROTA_ENV_NOTICES);
  g_silent.store(wanted != nullptr && strcmp(wanted, "0") == 0);
}

void silence_notices() { g_silent.store(true); }

void notice_once(Notice notice, const char* format, ...) {
  ErrnoGuard guard;
  if (g_silent.load(std::memory_order_relaxed)) return;
  const uint32_t bit = 1u << static_cast<uint32_t>(notice);
  if ((g_said.load(std::memory_order_relaxed) & bit) != 0 || (g_said.fetch_or(bit) & bit) != 0) {
    return;
  }
  char line[512] = "gpurota: ";
  const size_t head = strlen(line);
  va_list arguments;
  va_start(arguments, format);
  const int body = vsnprintf(line + head, sizeof(line) - head - 1, format, arguments);
  va_end(arguments);
  if (body < 0 || !is_the_same() || !takes_a_line()) return;
  size_t length = strlen(line);
  line[length++] = '\n';
  ::syscall(SYS_write, 2, line, length);
}

SizeText size_text(unsigned long long bytes) {
  SizeText out{};
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes);
  int unit = 0;
  for (; amount >= 1024 && unit < 6; ++unit) amount /= 1024;
  const bool whole = amount == static_cast<double>(static_cast<unsigned long long>(amount));
  snprintf(out.text, sizeof(out.text), whole ? "%.0f %s" : "%.1f %s", amount, kUnits[unit]);
  return out;
}

}  // namespace gpurota::interposer
