// Eviction from bounded tables that many users fill: the user with the most entries gives one up.
// So no user can push out the entries of others, however many entries they add. Pure.
#pragma once

#include <cstddef>
#include <map>

namespace gpurota {

// The owner who must give up an entry so that `newcomer` can add one: the owner with the most
// entries, counting the new one for the newcomer; on a tie the newcomer. `owner_of` returns the
// owner of an entry. Walks all entries: call it only when the table is full.
template <class Entries, class OwnerOf, class Owner>
Owner who_makes_room(const Entries& entries, const OwnerOf& owner_of, const Owner& newcomer) {
  std::map<Owner, std::size_t> counts;
  for (const auto& entry : entries) ++counts[owner_of(entry)];
  Owner most = newcomer;
  std::size_t count = counts[newcomer] + 1;
  for (const auto& [owner, has] : counts) {
    if (has <= count) continue;
    most = owner;
    count = has;
  }
  return most;
}

}  // namespace gpurota
