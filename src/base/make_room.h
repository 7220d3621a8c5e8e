// Tables that many users fill and that have a bound: whoever has most in one makes room in it. So
// nobody pushes out what others have there, however much they add. Pure.
#pragma once

#include <cstddef>
#include <map>

namespace gpurota {

// The owner who gives up an entry for one of `newcomer`: the owner with the most entries, the new
// one counted for the newcomer; at a tie the newcomer. `owner_of` returns the owner of an entry.
// Walks all entries: call it only when the table is full.
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
