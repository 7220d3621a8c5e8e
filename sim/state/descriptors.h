// Descriptors of exported memory: which open file is one, and whether any is still open on the
// machine.
//
// A real driver's descriptor is an open file of its own: it is passed on and duplicated, but cannot
// be opened anew by its path, and keeps the memory until its last duplicate is closed, in whatever
// process or message that is. So ours carries a lock, which belongs to the open file and ends with
// it. Any thread.
#pragma once

#include <cstdint>
#include <set>

namespace gpurota::sim {

// From here on the open file of `fd` is a descriptor of exported memory.
bool mark_export(int fd);
bool is_export(int fd);
// Of the files of all that are open anywhere.
std::set<std::uint64_t> inodes_of_open_exports();

}  // namespace gpurota::sim
