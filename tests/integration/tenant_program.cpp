// A process of its own on the tenant socket, which lives until it is killed:
//   SOCKET LEASE BYTES   holds memory under a lease: prints "granted" or "refused"
//   SOCKET [later]       asks for a lease by itself, `later` after a byte on its input, and prints the
//                        answer's status and GPUs; then asks again, and prints that status
#include "wire_tenant.h"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace {

void say(const char* line) {
  std::puts(line);
  std::fflush(stdout);
}

void ask(const char* socket) {
  gpurota::testing::WireTenant first(socket), second(socket);
  const auto answer = first.ask_for_lease();
  if (!answer) return say("no answer");
  std::printf("%u visible %s\n", answer->status, answer->visible);
  std::fflush(stdout);
  const auto again = second.ask_for_lease();
  const bool same = again && again->lease == answer->lease;
  std::printf("again %u%s\n", again ? again->status : 99u, same ? "" : ", another");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    char byte = 0;
    if (argc == 3) say("waits");
    if (argc == 3 && ::read(STDIN_FILENO, &byte, 1) != 1) return 1;
    ask(argv[1]);
    ::pause();
  }
  gpurota::testing::WireTenant tenant(argv[1]);
  const auto status = tenant.hello(std::strtoull(argv[2], nullptr, 10));
  const auto grown = tenant.grow(0, std::strtoull(argv[3], nullptr, 10));
  const bool granted = status == GPUROTA_OK && grown && grown->status == GPUROTA_OK;
  say(granted ? "granted" : "refused");
  ::pause();
}
