#include "sim/state/descriptors.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <fcntl.h>

namespace gpurota::sim {
namespace {

// The inode in a line like "1: OFDLCK ADVISORY  READ -1 00:01:1046 0 0", if the line is of the lock
// that marks an export; else 0.
std::uint64_t marked_inode(const std::string& line) {
  std::istringstream words(line.substr(std::min(line.find("OFDLCK"), line.size())));
  std::string kind, advice, mode, pid, file, first, last;
  if (!(words >> kind >> advice >> mode >> pid >> file >> first >> last)) return 0;
  const auto colon = file.rfind(':');
  if (first != "0" || last != "0" || mode != "READ" || colon == std::string::npos) return 0;
  return std::strtoull(file.c_str() + colon + 1, nullptr, 10);
}

std::set<std::uint64_t> marked_in(const std::string& path) {
  std::set<std::uint64_t> inodes;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (const std::uint64_t inode = marked_inode(line)) inodes.insert(inode);
  }
  return inodes;
}

}  // namespace

bool mark_export(int fd) {
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool is_export(int fd) { return !marked_in("/proc/self/fdinfo/" + std::to_string(fd)).empty(); }

std::set<std::uint64_t> inodes_of_open_exports() { return marked_in("/proc/locks"); }

}  // namespace gpurota::sim
