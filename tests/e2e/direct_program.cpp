// A program without the driver's library, as one that makes the system calls of the kernel's driver
// itself: direct_program MIB
//
// Holds MIB of the first GPU, prints "holding", and waits to be ended; prints "refused" if the
// driver refuses the memory. On a simulated machine the state of the machine is the kernel's side
// of the driver, and this program writes there. The program is static, so nothing can be preloaded.
#include "sim/state/machine.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

int main(int argc, char** argv) {
  const std::uint64_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1) << 20;
  const auto machine = gpurota::sim::Machine::open("");
  if (machine == nullptr || !machine->join()) {
    std::puts("no simulated machine");
    return 2;
  }
  if (!machine->charge(0, machine->config(0).context_bytes, false)) {
    std::puts("no context");
    return 3;
  }
  machine->count_context(0, 1);
  if (!machine->charge(0, bytes, true)) {
    std::puts("refused: out of memory");
    return 4;
  }
  std::puts("holding");
  std::fflush(stdout);
  for (;;) ::pause();
}
