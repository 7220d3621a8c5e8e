// Descriptors of exported memory: whether an open file is one, and whether any is still open on the
// machine.
//
// A real driver's descriptor is an open file of its own. A descriptor can be passed on and
// duplicated, but cannot be opened anew by its path, and keeps the memory until its last duplicate
// is closed, in whatever process or message. The simulator's descriptor therefore carries a lock,
// which belongs to the open file and ends with it. Any thread.
#pragma once

#include <cstdint>
#include <set>

namespace gpurota::sim {

// Marks the open file of `fd` as a descriptor of exported memory.
bool mark_export(int fd);
bool is_export(int fd);
// The inodes of all exports that are open on the machine.
std::set<std::uint64_t> inodes_of_open_exports();

}  // namespace gpurota::sim
