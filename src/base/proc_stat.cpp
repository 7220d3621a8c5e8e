#include "base/proc_stat.h"

#include "base/fd.h"

#include <fmt/core.h>

#include <array>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota {
namespace {

// Fields are counted from 1 as in proc(5); the name is field 2.
constexpr int kFirstAfterName = 3;
constexpr int kParent = 4;
constexpr int kStartTime = 22;

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  ProcStat stat;
  if (!parse_number(text.substr(0, open), stat.pid)) return std::nullopt;
  text.remove_prefix(close + 1);
  for (int field = kFirstAfterName; field <= kStartTime; ++field) {
    if (text.empty() || text.front() != ' ') return std::nullopt;
    text.remove_prefix(1);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    if (word.empty()) return std::nullopt;
    if (field == kFirstAfterName) stat.state = word.front();
    if (field == kParent && !parse_number(word, stat.parent)) return std::nullopt;
    if (field == kStartTime && !parse_number(word, stat.start_ticks)) return std::nullopt;
  }
  return stat;
}

std::optional<ProcStat> read_proc_stat(pid_t pid) {
  const Fd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 4096> buffer;  // 52 numbers and a name of at most 64 bytes
  const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
  if (size <= 0) return std::nullopt;
  return parse_proc_stat({buffer.data(), static_cast<std::size_t>(size)});
}

}  // namespace gpurota
