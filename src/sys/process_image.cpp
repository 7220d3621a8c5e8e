#include "sys/process_image.h"

#include "abi/env.h"
#include "abi/page.h"
#include "base/fd.h"
#include "base/proc_stat.h"
#include "sys/proc_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

// A limit on the text of maps; the kernel allows more, but no program needs it.
constexpr std::size_t kMostMapsBytes = 64 << 20;
constexpr std::size_t kMostEnvironmentBytes = 4 << 20;
// No path is longer, and the fields before it are far shorter.
constexpr std::size_t kLongestLine = 16384;

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Whether `entry` has the form "NAME=…" with a name that a shell accepts. A process title written
// over the environment leaves other text.
bool is_variable(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name.size() < entry.size() && !name.empty() &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

bool read_mappings(pid_t pid, ProcessImage& image) {
  const Fd fd(::open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 65536> buffer;
  std::string rest;  // the part of a line whose end is still to be read
  for (std::size_t total = 0; total < kMostMapsBytes;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 && total != 0;
    total += static_cast<std::size_t>(got);
    rest.append(buffer.data(), static_cast<std::size_t>(got));
    std::string_view text = rest;
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      note_mapping(text.substr(0, end), image);
    }
    if (text.size() > kLongestLine) return false;
    rest.erase(0, rest.size() - text.size());
  }
  return false;
}

}  // namespace

void note_mapping(std::string_view line, ProcessImage& image) {
  // "55d0-55e0 r-xp 00000000 fe:01 1234    /usr/lib/libcuda.so.1": no slash before the path.
  const std::size_t rights = line.find(' '), at = line.find('/');
  if (at == line.npos || rights + 4 > at) return;
  std::string_view path = without_deleted(line.substr(at));
  if (path == "/memfd:" GPUROTA_PAGE_MEMFD) image.page = true;
  if (line[rights + 3] != 'x') return;
  path.remove_prefix(path.rfind('/') + 1);
  if (path == "libgpurota.so") image.library = true;
  if (path.starts_with("libcuda.so")) image.driver = true;
}

void note_environment(std::string_view text, ProcessImage& image) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_variable(entry)) continue;
    image.has_environment = true;
    if (take_prefix(entry, GPUROTA_ENV_LEASE "=")) {
      image.lease = entry;
    } else if (take_prefix(entry, GPUROTA_ENV_SOCKET "=")) {
      image.socket = entry;
    }
  }
}

std::optional<ProcessImage> read_process_image(pid_t pid, std::uint64_t start_ticks) {
  ProcessImage image;
  if (!read_mappings(pid, image)) return std::nullopt;
  const auto environment = read_whole(fmt::format("/proc/{}/environ", pid), kMostEnvironmentBytes);
  if (!environment) return std::nullopt;
  // A process started without an environment has no variables: that too is known.
  image.has_environment = environment->empty();
  note_environment(*environment, image);
  // Checked after reading: if the start time still matches, the data is of that process.
  const auto stat = read_proc_stat(pid);
  if (!stat || stat->start_ticks != start_ticks) return std::nullopt;
  return image;
}

}  // namespace gpurota::sys
