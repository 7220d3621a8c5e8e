#include "daemon/tenants/park_wishes.h"

#include "lease/reason.h"

#include <algorithm>
#include <set>

namespace gpurota::daemon {
namespace {

Reason waits_until(const char* what) { return lease::cannot_start_reason({Code::kNoGpu, 0, what}); }

template <class Wishes>
auto find_wish(Wishes& wishes, LeaseId lease) {
  return std::find_if(wishes.begin(), wishes.end(),
                      [&](const auto& each) { return each.lease == lease; });
}

}  // namespace

void ParkWishes::remove(LeaseId lease) {
  std::erase_if(wishes_, [&](const Wish& each) { return each.lease == lease; });
}

std::vector<LeaseId> ParkWishes::leases() const {
  std::vector<LeaseId> leases;
  for (const Wish& wish : wishes_) leases.push_back(wish.lease);
  return leases;
}

std::optional<Author> ParkWishes::author(LeaseId lease) const {
  const auto it = find_wish(wishes_, lease);
  return it == wishes_.end() ? std::nullopt : std::optional(it->by);
}

const Reason* ParkWishes::waits_for(LeaseId lease) const {
  const auto it = find_wish(wishes_, lease);
  return it == wishes_.end() || !it->why ? nullptr : &*it->why;
}

bool ParkWishes::has_room(LeaseId lease) {
  std::optional<Reason> why = find_obstacle(lease);
  // Fillers that have left meanwhile may have changed the wishes.
  const auto it = find_wish(wishes_, lease);
  if (it == wishes_.end()) return false;
  if (it->why != why) ++changes_;
  it->why = std::move(why);
  return !it->why;
}

std::optional<Reason> ParkWishes::find_obstacle(LeaseId lease) {
  const sched::Turns& turns = parts_.turns.turns();
  if (turns.on_hold(parts_.loop.now())) {
    return waits_until("waits until the programs with turns have connected to the new daemon");
  }
  std::set<LeaseId> later;
  for (auto it = wishes_.rbegin(); it != wishes_.rend() && it->lease != lease; ++it) {
    later.insert(it->lease);
  }
  if (auto why = parts_.room.find_obstacle(lease, later)) return why;
  const LeaseEntry* const entry = parts_.tables.find(lease);
  if (!entry || !entry->lease.swap() || turns.could_come_back(lease)) return std::nullopt;
  return waits_until(
      "waits for memory that the other leases with turns on its GPUs cannot move, or for host "
      "memory");
}

}  // namespace gpurota::daemon
