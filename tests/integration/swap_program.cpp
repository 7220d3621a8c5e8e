// A tenant of a swap lease in a process of its own:
//   SOCKET LEASE BYTES   joins, asks for so much, prints "granted" or "refused", works for ever, and
//                        prints "again N" after the N-th opening of its gate beyond the first
#include "swap_client.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include <poll.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  gpurota::testing::SwapClient tenant(argv[1]);
  if (!tenant.join(std::stoull(argv[2]))) {
    std::cout << "not welcome" << std::endl;
    return 1;
  }
  tenant.set_busy(true);
  const auto status = tenant.grow(gpurota::Bytes(std::stoull(argv[3])));
  std::cout << (status == GPUROTA_OK ? "granted" : "refused") << std::endl;
  for (int told = tenant.turns();;) {
    (void)::poll(nullptr, 0, 2);
    if (tenant.turns() == told) continue;
    told = tenant.turns();
    std::cout << "again " << told << std::endl;
  }
}
