// Tables that many users fill and that have a bound: whoever has most in one makes room in it. So nobody pushes out what others have there, however
// much they add. Pure.
#pragma once

#include <cstddef>
#include <map>

namespace gpurota {

// Whose entry has to go, that one of `newcomer` has a place: of who has most, the newcomer's own counted. The newcomer, if others have no more.
// `owner_of` says of an entry whose it is. Takes as long as there are entries: ask when the table is full.
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
