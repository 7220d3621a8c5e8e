#include "sim/state/host_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace gpurota::sim {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// The number in a one-line file; `missing` if there is no file or it says "max".
std::uint64_t read_number(const std::string& path, std::uint64_t missing) {
  const File file(std::fopen(path.c_str(), "re"));
  unsigned long long value = 0;
  if (!file || std::fscanf(file.get(), "%llu", &value) != 1) return missing;
  return value;
}

// The value of `key` (with its colon) in bytes; UINT64_MAX if there is none.
std::uint64_t meminfo(const char* key) {
  const File file(std::fopen("/proc/meminfo", "re"));
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) != 0) continue;
    return std::strtoull(line + std::strlen(key), nullptr, 10) << 10;
  }
  return UINT64_MAX;
}

// Page cache of the group that the kernel frees on demand; usage includes it.
std::uint64_t reclaimable(const std::string& group) {
  const File file(std::fopen((group + "/memory.stat").c_str(), "re"));
  char line[256];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long long bytes = 0;
    if (std::sscanf(line, "inactive_file %llu", &bytes) == 1) return bytes;
  }
  return 0;
}

// The least memory that the group at `path`, or a group above it, has left below its limit.
std::uint64_t group_room(const std::string& root, std::string path, const char* limit,
                         const char* usage) {
  std::uint64_t room = UINT64_MAX;
  while (true) {
    const std::string group = root + path;
    const std::uint64_t most = read_number(group + limit, UINT64_MAX);
    const std::uint64_t used = read_number(group + usage, 0);
    const std::uint64_t held = most == UINT64_MAX ? 0 : used - std::min(used, reclaimable(group));
    if (most != UINT64_MAX) room = std::min(room, most > held ? most - held : 0);
    if (path.empty()) return room;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

std::uint64_t host_bytes() { return meminfo("MemTotal:"); }

std::uint64_t host_bytes_available() {
  std::uint64_t room = meminfo("MemAvailable:");
  const File file(std::fopen("/proc/self/cgroup", "re"));
  char line[4096];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    const char* controllers = std::strchr(line, ':');
    const char* path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (path == nullptr || path[1] != '/') continue;
    const std::string group = std::strcmp(path + 1, "/") == 0 ? "" : path + 1;
    if (std::strncmp(line, "0::", 3) == 0) {
      room = std::min(room, group_room("/sys/fs/cgroup", group, "/memory.max", "/memory.current"));
    } else if (std::strncmp(controllers, ":memory:", 8) == 0) {
      room = std::min(room, group_room("/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes",
                                       "/memory.usage_in_bytes"));
    }
  }
  return room;
}

}  // namespace gpurota::sim
