// Standard streams that are not there. Called first of all by main(), of programs that open files
// and sockets of their own: what was started with its input, output or error closed ("2>&-", a
// careless service manager) would get a socket as its standard error, and write its messages to it.
// Never changes a stream that is open, and what is executed later finds the closed ones closed.
#pragma once

namespace gpurota {

// Occupies closed descriptors among 0, 1 and 2, so that reading or writing them still fails.
void occupy_closed_streams();

}  // namespace gpurota
