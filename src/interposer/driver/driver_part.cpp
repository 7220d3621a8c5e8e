#include "interposer/driver/driver_part.h"

#include <cstring>

namespace gpurota::interposer {

std::atomic<DriverPart*> g_driver_part{nullptr};
std::atomic<bool> g_check_pid{false};

namespace {

// Kernels before 4.14 have no MADV_WIPEONFORK. There, only the process id reveals a raw clone()
// that bypassed libc's fork handlers, so each hook pays a system call.
DriverPart* make_parts() {
  ErrnoGuard guard;
  const size_t bytes = (g_spare_memory.bytes + 4095) & ~static_cast<size_t>(4095);
  void* memory = map_memory(bytes, 0);
  if (memory == nullptr) memory = g_spare_memory.memory;
  if (memory == g_spare_memory.memory || ::madvise(memory, bytes, MADV_WIPEONFORK) != 0) {
    g_check_pid.store(true, std::memory_order_relaxed);
  }
  DriverPart* made = static_cast<DriverPart*>(memory);
  made->pid = sys_getpid();
  DriverPart* nobody = nullptr;
  if (g_driver_part.compare_exchange_strong(nobody, made)) return made;
  if (memory != g_spare_memory.memory) ::munmap(memory, bytes);
  return nobody;
}

void wipe_in_child(DriverPart* s) {
  ErrnoGuard guard;
  const int32_t pid = sys_getpid();
  if (s->pid == pid) return;
  memset(static_cast<void*>(s), 0, g_spare_memory.bytes);
  s->pid = pid;
}

}  // namespace

DriverPart& find_driver_part() {
  DriverPart* s = g_driver_part.load(std::memory_order_acquire);
  if (s == nullptr) s = make_parts();
  if (g_check_pid.load(std::memory_order_relaxed)) wipe_in_child(s);
  return *s;
}

}  // namespace gpurota::interposer
