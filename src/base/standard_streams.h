// Handles closed standard streams. A program started with its input, output or error closed
// ("2>&-", a careless service manager) would get a socket as its standard error, and write its
// messages there. main() of a program that opens files and sockets calls this first. Open streams
// never change, and executed programs still find closed streams closed.
#pragma once

namespace gpurota {

// Occupies the closed descriptors among 0, 1 and 2, so that reading or writing them still fails.
void occupy_closed_streams();

}  // namespace gpurota
