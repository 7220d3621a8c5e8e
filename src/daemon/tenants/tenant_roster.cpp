#include "daemon/tenants/tenant_roster.h"

#include "base/fd.h"
#include "base/read_all.h"
#include "base/replace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

constexpr const char* kFirstLine = "gpurota tenants 1";
constexpr const char* kLastLine = "end";
// The most that is read of the file. Even the largest number of tenants needs less.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::chrono::milliseconds kBelievedFor = std::chrono::seconds(5);

// Milliseconds of the monotonic clock, which all processes share since the machine was booted.
std::int64_t milliseconds(TimePoint when) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

// Reads "GPU CONTEXTS OVERHEAD" for each GPU. Empty: a figure is not a number.
std::optional<std::vector<lease::HeldMemory>> read_held(std::istringstream& words) {
  std::vector<lease::HeldMemory> held;
  for (lease::HeldMemory memory; words >> memory.gpu.value;) {
    std::uint64_t overhead = 0;
    if (!(words >> memory.contexts >> overhead)) return std::nullopt;
    memory.overhead = Bytes(overhead);
    held.push_back(memory);
  }
  return held;
}

std::string held_text(const std::vector<lease::HeldMemory>& held) {
  std::string text;
  for (const lease::HeldMemory& memory : held) {
    if (!memory.overhead) continue;
    text += fmt::format(" {} {} {}", memory.gpu.value, memory.contexts, memory.overhead->count());
  }
  return text;
}

}  // namespace

void TenantRoster::load(ports::Processes& processes, TimePoint now, TimePoint settled) {
  loaded_at_ = now;
  settled_ = settled;
  if (file_.empty()) return;
  loaded_ = read(processes, now);
  if (!loaded_) {
    awaited_.clear();
    unsettled_.clear();
  }
  ::unlink(file_.c_str());
}

// False: the file does not exist, or is incomplete.
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
    bool seen = false;
    if (!(words >> member.lease.value >> member.pid >> member.start_ticks >> seen)) return false;
    auto held = read_held(words);
    if (!held) return false;
    const auto handle = processes.open({member.pid, member.start_ticks});
    const bool gone = !handle && handle.error().code == Code::kGone;
    // The memory of a process that has ended may not be back yet.
    if (gone || !seen) unsettled_.insert(member.lease);
    if (!gone) awaited_[member] = std::move(*held);
  }
  return false;
}

Result<void> TenantRoster::save(const lease::GrantBook& grants, TimePoint now) const {
  if (file_.empty() || (!loaded_ && now < settled_)) return {};
  std::string text = fmt::format("{}\n{}\n", kFirstLine, milliseconds(now));
  const auto append = [&](const Member& member, const std::vector<lease::HeldMemory>& held) {
    const bool seen =
        std::all_of(held.begin(), held.end(), [](const auto& m) { return m.settled; });
    text += fmt::format("{} {} {} {:d}{}\n", member.lease.value, member.pid, member.start_ticks,
                        seen, held_text(held));
  };
  for (const auto& [member, tenants] : tenants_) append(member, grants.held_by(tenants.back()));
  for (const auto& [member, held] : awaited_) append(member, held);
  if (now < settled_) {
    for (const LeaseId lease : unsettled_) text += fmt::format("{} 0 0 0\n", lease.value);
  }
  text += fmt::format("{}\n", kLastLine);
  return replace_file(file_, text, 0600);
}

void TenantRoster::recall(LeaseId lease, const ports::ProcessId& process,
                          std::vector<lease::HeldMemory>& held) const {
  const auto known = awaited_.find({lease, process.pid, process.start_ticks});
  if (known == awaited_.end()) return;
  for (lease::HeldMemory& memory : held) {
    for (const lease::HeldMemory& before : known->second) {
      const bool same = before.gpu == memory.gpu && before.contexts == memory.contexts;
      if (same) memory.overhead = before.overhead;
    }
  }
}

bool TenantRoster::add(LeaseId lease, const ports::ProcessId& process, TenantId tenant,
                       TimePoint now) {
  const Member member{lease, process.pid, process.start_ticks};
  tenants_[member].push_back(tenant);
  if (awaited_.erase(member) == 0 || awaits(lease)) return false;
  completed_[lease] = now;
  return true;
}

void TenantRoster::remove(LeaseId lease, const ports::ProcessId& process, TenantId tenant) {
  const auto at = tenants_.find({lease, process.pid, process.start_ticks});
  if (at == tenants_.end()) return;
  std::erase(at->second, tenant);
  if (at->second.empty()) tenants_.erase(at);
}

bool TenantRoster::awaits(LeaseId lease) const {
  const auto first = awaited_.lower_bound({lease, 0, 0});
  return first != awaited_.end() && first->first.lease == lease;
}

bool TenantRoster::was_complete(LeaseId lease, TimePoint when) const {
  if (!loaded_ || unsettled_.contains(lease) || awaits(lease)) return false;
  const auto at = completed_.find(lease);
  return (at == completed_.end() ? loaded_at_ : at->second) <= when;
}

}  // namespace gpurota::daemon
