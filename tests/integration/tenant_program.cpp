// A process of its own that holds memory under a lease: SOCKET LEASE BYTES. Prints "granted" or
// "refused" and lives until it is killed.
#include "wire_tenant.h"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

int main(int, char** argv) {
  gpurota::testing::WireTenant tenant(argv[1]);
  const auto status = tenant.hello(std::strtoull(argv[2], nullptr, 10));
  const auto grown = tenant.grow(0, std::strtoull(argv[3], nullptr, 10));
  const bool granted = status == GPUROTA_OK && grown && grown->status == GPUROTA_OK;
  std::puts(granted ? "granted" : "refused");
  std::fflush(stdout);
  ::pause();
}
