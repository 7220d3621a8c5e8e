// Closing what a child has inherited before it executes a program. Only makes system calls: may be
// called between fork and execve.
#pragma once

namespace gpurota {

// Closes every descriptor from `first` on.
void close_from(int first);

// The same one by one, which close_from() does where the kernel (before Linux 5.9) or a sandbox has
// no close_range(2): up to the limit of descriptors of this process.
void close_each_from(int first);

}  // namespace gpurota
