#include "daemon/tenants/tenant_roster.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr const char* kFirstLine = "gpurota tenants 1";
constexpr const char* kLastLine = "end";
// Of some 50 bytes each; more than there may be tenants.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;
constexpr std::chrono::milliseconds kBelievedFor = std::chrono::seconds(10);

// Of the clock that all processes have, since the machine was booted.
std::int64_t milliseconds(TimePoint when) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

}  // namespace

void TenantRoster::load(ports::Processes& processes, TimePoint now, TimePoint settled) {
  settled_ = settled;
  if (file_.empty()) return;
  loaded_ = read(processes, now);
  if (!loaded_) awaited_.clear();
  ::unlink(file_.c_str());
}

// False if it is not there, or not whole.
bool TenantRoster::read(ports::Processes& processes, TimePoint now) {
  const Fd fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return false;
  const auto text = read_all(fd.get(), kMostBytes);
  if (!text) return false;
  std::istringstream lines(*text);
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) return false;
  std::int64_t written = 0;
  if (!std::getline(lines, line) || !(std::istringstream(line) >> written)) return false;
  const std::int64_t age = milliseconds(now) - written;
  if (age < 0 || age > kBelievedFor.count()) return false;
  while (std::getline(lines, line)) {
    if (line == kLastLine) return true;
    std::istringstream words(line);
    Member member;
    if (!(words >> member.lease.value >> member.pid >> member.start_ticks)) return false;
    const auto handle = processes.open({member.pid, member.start_ticks});
    if (handle || handle.error().code != Code::kGone) awaited_.insert(member);
  }
  return false;
}

Result<void> TenantRoster::save(TimePoint now) const {
  if (file_.empty() || (!loaded_ && now < settled_)) return {};
  std::string text = fmt::format("{}\n{}\n", kFirstLine, milliseconds(now));
  const auto append = [&](const Member& member) {
    text += fmt::format("{} {} {}\n", member.lease.value, member.pid, member.start_ticks);
  };
  for (const auto& [member, connections] : tenants_) append(member);
  for (const Member& member : awaited_) append(member);
  text += fmt::format("{}\n", kLastLine);
  return replace_file(file_, text, 0600);
}

bool TenantRoster::add(LeaseId lease, const ports::ProcessId& process) {
  const Member member{lease, process.pid, process.start_ticks};
  ++tenants_[member];
  return awaited_.erase(member) > 0 && is_complete(lease);
}

void TenantRoster::remove(LeaseId lease, const ports::ProcessId& process) {
  const auto at = tenants_.find({lease, process.pid, process.start_ticks});
  if (at != tenants_.end() && --at->second == 0) tenants_.erase(at);
}

bool TenantRoster::is_complete(LeaseId lease) const {
  const auto first = awaited_.lower_bound({lease, 0, 0});
  return loaded_ && (first == awaited_.end() || first->lease != lease);
}

}  // namespace gpurota::daemon
