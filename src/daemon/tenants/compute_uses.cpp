#include "daemon/tenants/compute_uses.h"

#include <algorithm>
#include <set>
#include <utility>

namespace gpurota::daemon {
namespace {

using Processes = ComputeUses::Processes;

// Each lease once.
template <class Is>
std::vector<LeaseId> leases_with(const Processes& processes, Is is) {
  std::vector<LeaseId> found;
  for (const ComputeUses::Process& process : processes) {
    const bool known = std::find(found.begin(), found.end(), process.lease) != found.end();
    if (is(process) && !known) found.push_back(process.lease);
  }
  return found;
}

std::vector<LeaseId> busy_leases(const Processes& processes) {
  return leases_with(processes, [](const auto& process) { return process.busy; });
}

std::vector<LeaseId> waiting_leases(const Processes& processes) {
  return leases_with(processes, [](const auto& process) { return process.waits; });
}

}  // namespace

void ComputeUses::set_parties(const sched::ComputeWindows& windows,
                              std::span<const Processes> parties, TimePoint now) {
  std::set<LeaseId> named;
  parties_.clear();
  for (std::size_t i = 0; i < parties.size(); ++i) {
    parties_.push_back({windows.charged(i), busy_leases(parties[i])});
    for (const Process& process : parties[i]) named.insert(process.lease);
  }
  std::erase_if(uses_, [&](const auto& each) { return !named.contains(each.first); });
  for (const LeaseId lease : named) uses_.try_emplace(lease, Use{HeldCount(now), {}, {}});
  for (auto& [lease, use] : uses_) {
    use.held.tidy(now);
    use.has_bound = false;
  }
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const bool has_bound = windows.parties()[i].most != 0;
    for (const Process& process : parties[i]) uses_.at(process.lease).has_bound = has_bound;
  }
  counted_ = now;
}

// A party waits for the window of another one, or, when its own window is over, for all that work.
void ComputeUses::count_held(const sched::ComputeWindows& windows,
                             std::span<const Processes> parties, std::size_t index, Duration past,
                             TimePoint now) {
  const std::vector<LeaseId> waiting = waiting_leases(parties[index]);
  if (waiting.empty() || windows.is_open(index)) return;
  if (windows.is_bounded(index)) {
    for (const LeaseId lease : waiting) uses_.at(lease).bounded.add(past, now);
    return;
  }
  std::set<LeaseId> whom;
  for (std::size_t other = 0; other < parties.size(); ++other) {
    const bool counts = windows.holder() == index || windows.holder() == other;
    if (other == index || !counts) continue;
    whom.insert(parties_[other].works.begin(), parties_[other].works.end());
  }
  for (const LeaseId lease : waiting) {
    HeldCount& held = uses_.at(lease).held;
    held.add(past, now);
    for (const LeaseId other : whom) held.add_for(other, past, now);
  }
}

void ComputeUses::count(const sched::ComputeWindows& windows, std::span<const Processes> parties,
                        TimePoint now) {
  const Duration past = std::clamp<Duration>(now - std::exchange(counted_, now), {},
                                             sched::ComputeWindows::kMostSeen);
  std::vector<bool> works(parties.size());
  for (std::size_t i = 0; i < parties.size(); ++i) {
    std::vector<LeaseId> busy = busy_leases(parties[i]);
    works[i] = !busy.empty();
    if (works[i]) parties_[i].works = std::move(busy);
  }
  const auto working = std::count(works.begin(), works.end(), true);
  for (std::size_t i = 0; i < parties.size(); ++i) {
    Duration got = windows.charged(i) - std::exchange(parties_[i].charged, windows.charged(i));
    if (!windows.divides() && works[i]) got += past / working;
    for (const LeaseId lease : parties_[i].works) {
      const auto count = static_cast<Duration::rep>(parties_[i].works.size());
      uses_.at(lease).got.add(got / count, now);
    }
    count_held(windows, parties, i, past, now);
  }
}

std::optional<LastMinute> ComputeUses::last_minute(LeaseId lease, TimePoint now) const {
  const auto found = uses_.find(lease);
  if (found == uses_.end()) return std::nullopt;
  LastMinute minute = found->second.held.last_minute(now);
  minute.got = std::min(found->second.got.sum(now), minute.known);
  if (found->second.has_bound) {
    minute.bounded = std::min(found->second.bounded.sum(now), minute.known);
  }
  return minute;
}

}  // namespace gpurota::daemon
