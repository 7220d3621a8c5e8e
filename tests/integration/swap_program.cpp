// A tenant of a swap lease in its own process:
//   SOCKET LEASE BYTES        joins, requests BYTES, prints "granted" or "refused", works forever;
//                             prints "again N" at each later opening of its gate, the N-th in all
//   SOCKET LEASE BYTES lazy   the same, and then ignores all orders
//   SOCKET LEASE BYTES here   waits for a line, joins with BYTES on the GPU and an open gate, and
//                             prints "joined"
//   SOCKET LEASE BYTES out    like here, with BYTES in host memory and a closed gate
#include "swap_client.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include <poll.h>

namespace {

int come_back(const std::string& socket, std::uint64_t lease, gpurota::Bytes bytes, bool out) {
  std::string line;
  std::getline(std::cin, line);
  gpurota::testing::SwapClient tenant(socket);
  const bool joined = tenant.join(lease, {bytes, out ? gpurota::Bytes() : bytes, {}, !out});
  tenant.set_busy(true);
  std::cout << (joined ? "joined" : "not welcome") << std::endl;
  for (;;) (void)::poll(nullptr, 0, 1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const std::string mode = argc == 5 ? argv[4] : "";
  const gpurota::Bytes bytes(std::stoull(argv[3]));
  if (mode == "here" || mode == "out")
    return come_back(argv[1], std::stoull(argv[2]), bytes, mode == "out");
  gpurota::testing::SwapClient tenant(argv[1]);
  if (!tenant.join(std::stoull(argv[2]))) {
    std::cout << "not welcome" << std::endl;
    return 1;
  }
  tenant.set_busy(true);
  const auto status = tenant.grow(bytes);
  tenant.set_lazy(mode == "lazy");
  std::cout << (status == GPUROTA_OK ? "granted" : "refused") << std::endl;
  for (int told = tenant.turns();;) {
    (void)::poll(nullptr, 0, 2);
    if (tenant.turns() == told) continue;
    told = tenant.turns();
    std::cout << "again " << told << std::endl;
  }
}
