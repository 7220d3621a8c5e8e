#include "sys/command_lines.h"

#include "base/make_room.h"
#include "base/proc_stat.h"
#include "sys/proc_files.h"

#include <fmt/core.h>

namespace gpurota::sys {
namespace {

// The kernel allows 2 MiB. Twice what is ever shown, so that one can see that a line was cut.
constexpr std::size_t kMostCommandBytes = 16384;
constexpr Duration kUnwanted = std::chrono::minutes(1);

}  // namespace

std::optional<std::vector<std::string>> read_command_line(pid_t pid, std::uint64_t start_ticks) {
  const auto text = read_whole(fmt::format("/proc/{}/cmdline", pid), kMostCommandBytes);
  if (!text) return std::nullopt;
  // Checked after reading: if the start time still matches, the text is of that process.
  const auto stat = read_proc_stat(pid);
  if (!stat || stat->start_ticks != start_ticks) return std::nullopt;
  return parse_cmdline(*text);
}

CommandLines::CommandLines(ports::EventLoop& loop, Read read)
    : loop_(loop), read_(std::move(read)), workers_(loop, "command", "the command line") {}

Result<std::vector<std::string>> CommandLines::of(const ports::ProcessInfo& process) {
  const TimePoint now = loop_.now();
  Known* const known = known_of(process);
  if (known) {
    known->wanted = now;
    const bool old = !known->asked || now - *known->asked >= kFresh;
    if (!known->reading && old) read(process, *known);
    if (known->words) return *known->words;
    if (known->answered) {
      return fail(Code::kGone, fmt::format("process {} has ended", process.pid));
    }
    if (known->reading && now - *known->asked < kPatience) {
      return fail(Code::kUnavailable,
                  fmt::format("the command line of process {} is being read", process.pid));
    }
  }
  return fail(Code::kTimeout,
              fmt::format("the command line of process {} cannot be read for now", process.pid));
}

// Null: too many processes are known, and none can be removed.
CommandLines::Known* CommandLines::known_of(const ports::ProcessInfo& process) {
  auto it = known_.find(process.pid);
  if (it != known_.end() && it->second.start_ticks == process.start_ticks) return &it->second;
  if (it == known_.end()) {
    forget_unwanted();
    if (known_.size() >= kMostProcesses && !make_room(process.uid)) return nullptr;
    it = known_.try_emplace(process.pid).first;
  }
  it->second = Known();
  it->second.uid = process.uid;
  it->second.start_ticks = process.start_ticks;
  return &it->second;
}

void CommandLines::forget_unwanted() {
  const TimePoint now = loop_.now();
  std::erase_if(known_, [&](const auto& each) { return now - each.second.wanted >= kUnwanted; });
  workers_.tidy();
}

// Removes the least recently wanted entry of the user with the most entries. Entries that are being
// read stay.
bool CommandLines::make_room(uid_t uid) {
  const uid_t who = who_makes_room(
      known_, [](const auto& each) { return each.second.uid; }, uid);
  auto oldest = known_.end();
  for (auto at = known_.begin(); at != known_.end(); ++at) {
    if (at->second.uid != who || at->second.reading) continue;
    if (oldest == known_.end() || at->second.wanted < oldest->second.wanted) oldest = at;
  }
  if (oldest == known_.end()) return false;
  known_.erase(oldest);
  return true;
}

void CommandLines::read(const ports::ProcessInfo& process, Known& known) {
  known.asked = loop_.now();
  known.reading = workers_.run(
      process.uid,
      [read = read_, pid = process.pid, start = process.start_ticks] { return read(pid, start); },
      [this, pid = process.pid, start = process.start_ticks](auto words) {
        take(pid, start, std::move(words));
      });
}

void CommandLines::take(pid_t pid, std::uint64_t start_ticks,
                        std::optional<std::vector<std::string>> words) {
  const auto known = known_.find(pid);
  if (known == known_.end() || known->second.start_ticks != start_ticks) return;
  known->second.reading = false;
  known->second.answered = true;
  // The last command line of a process stays when the process has ended.
  if (!words || known->second.words == words) return;
  known->second.words = std::move(words);
  ++changes_;
}

}  // namespace gpurota::sys
