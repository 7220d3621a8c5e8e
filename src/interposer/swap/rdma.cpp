#include "interposer/swap/rdma.h"

#include "interposer/os/sys.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

// Matched anywhere in a path: a container may have its devices elsewhere, and a test has files of
// these names.
constexpr const char* kNames[] = {"/dev/infiniband/uverbs", "/dev/nvidia-fs", "/dev/gdrdrv"};

// A directory entry, as the kernel returns it.
struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t size;
  uint8_t type;
  char name[1];
};

bool is_rdma_device(const char* path) {
  for (const char* name : kNames) {
    if (strstr(path, name) != nullptr) return true;
  }
  return false;
}

bool is_open_device(int directory, const Entry& entry, char* out, size_t room) {
  const long length = ::syscall(SYS_readlinkat, directory, entry.name, out, room - 1);
  if (length <= 0) return false;
  out[length] = '\0';
  return is_rdma_device(out);
}

}  // namespace

bool find_rdma_device(char* out, size_t room) {
  ErrnoGuard guard;
  const auto directory = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) {
    strncpy(out, "(/proc/self/fd cannot be read)", room - 1);
    out[room - 1] = '\0';
    return true;
  }
  bool found = false;
  alignas(Entry) char entries[4096];
  for (long size = 1; size > 0 && !found;) {
    size = ::syscall(SYS_getdents64, directory, entries, sizeof(entries));
    for (long at = 0; at < size && !found;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries + at);
      found = is_open_device(directory, *entry, out, room);
      at += entry->size;
    }
  }
  sys_close(directory);
  return found;
}

}  // namespace gpurota::interposer
