// Closes descriptors that a child has inherited, before the child executes a program. Makes system
// calls only: may be called between fork and execve.
#pragma once

namespace gpurota {

// Closes every descriptor numbered `first` or higher.
void close_from(int first);

// Closes the same descriptors one by one, up to this process's limit of descriptors. close_from()
// calls it where the kernel (before Linux 5.9) or a sandbox lacks close_range(2).
void close_each_from(int first);

}  // namespace gpurota
