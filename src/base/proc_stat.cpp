#include "base/proc_stat.h"

#include "base/fd.h"

#include <fmt/core.h>

#include <algorithm>
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

// The beginning of the file that fits the buffer; empty if it cannot be read.
std::string_view read_file(pid_t pid, const char* name, std::array<char, 4096>& buffer) {
  const Fd fd(::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : -1;
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
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
  std::array<char, 4096> buffer;  // 52 numbers and a name of at most 64 bytes
  return parse_proc_stat(read_file(pid, "stat", buffer));
}

std::optional<ProcUids> parse_proc_uids(std::string_view status) {
  // The first line is the program's name, in which the kernel escapes newlines.
  const std::size_t at = status.find("\nUid:\t");
  if (at == status.npos) return std::nullopt;
  status.remove_prefix(at + 6);
  ProcUids uids;
  for (uid_t* uid : {&uids.real, &uids.effective}) {
    const std::string_view word = status.substr(0, status.find_first_of("\t\n"));
    if (!parse_number(word, *uid)) return std::nullopt;
    status.remove_prefix(std::min(word.size() + 1, status.size()));
  }
  return uids;
}

std::optional<ProcUids> read_proc_uids(pid_t pid) {
  std::array<char, 4096> buffer;  // the first lines are short
  return parse_proc_uids(read_file(pid, "status", buffer));
}

}  // namespace gpurota
