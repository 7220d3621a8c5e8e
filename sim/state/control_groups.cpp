#include "sim/state/control_groups.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sim {
namespace {

namespace fs = std::filesystem;

// By the process that was moved there.
std::map<long, std::string> moved_in(const std::string& tree) {
  std::map<long, std::string> moved;
  std::error_code error;
  for (fs::recursive_directory_iterator at(tree, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename() != "cgroup.procs") continue;
    std::ifstream file(at->path());
    for (long pid = 0; file >> pid;) moved[pid] = at->path().parent_path().string();
  }
  return moved;
}

long parent_of(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; file >> word;) {
    if (word != "PPid:") continue;
    long parent = 0;
    file >> parent;
    return parent;
  }
  return 0;
}

std::string group_in_tree(const std::string& tree) {
  const auto moved = moved_in(tree);
  for (long pid = ::getpid(); pid > 1; pid = parent_of(pid)) {
    const auto found = moved.find(pid);
    if (found != moved.end()) return found->second;
  }
  return tree;
}

// Where version 2 is mounted; empty: nowhere.
std::string mount_point() {
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.find(" - cgroup2 ") == line.npos) continue;
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    return root == "/" ? point : "";
  }
  return "";
}

}  // namespace

std::string own_group(const std::string& dir) {
  const std::string tree = dir + "/cgroup";
  if (is_group(tree)) return group_in_tree(tree);
  const std::string point = mount_point();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; !point.empty() && std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line == "0::/" ? point : point + line.substr(3);
  }
  return "";
}

bool is_group(const std::string& directory) {
  struct stat info = {};
  return ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_in_group(const std::string& path, const std::string& group) {
  return !group.empty() && path.compare(0, group.size(), group) == 0 &&
         (path.size() == group.size() || path[group.size()] == '/');
}

}  // namespace gpurota::sim
