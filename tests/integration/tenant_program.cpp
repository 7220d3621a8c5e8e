// A process of its own on the tenant socket, which lives until it is killed:
//   SOCKET LEASE BYTES   holds memory under a lease: prints "granted" or "refused"
//   SOCKET [later]       asks for a lease by itself (`later`: after a byte on its input), prints
//                        the answer's status and GPUs, asks again, and prints the new status
//   SOCKET joins LEASE TOKEN [UID]   says, as this user, that it is in the lease; prints the
//                        answer's status
//   SOCKET holds LEASE   prints "waits"; then does what each line of its input says:
//                        BYTES      requests BYTES; prints "granted" or "refused"
//                        fork       makes a child that is not a tenant; prints its pid
//                        as nobody  the same, as the user nobody
//                        orphan     makes a child and a grandchild; `let go` then ends the child
#include "wire_tenant.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using gpurota::testing::WireTenant;

void say(const std::string& line) { std::cout << line << std::endl; }

void ask(const char* socket) {
  WireTenant first(socket), second(socket);
  const auto answer = first.ask_for_lease();
  if (!answer) return say("no answer");
  say(std::to_string(answer->status) + " visible " + answer->visible);
  const auto again = second.ask_for_lease();
  const bool same = again && again->lease == answer->lease;
  say("again " + std::to_string(again ? again->status : 99u) + (same ? "" : ", another"));
}

void join(const char* socket, std::uint64_t lease, const std::string& token) {
  const auto answer = WireTenant(socket).ask_for_lease(lease, token);
  say(answer ? std::to_string(answer->status) : "no answer");
  ::pause();
}

const char* grow(WireTenant& tenant, const std::string& bytes) {
  const auto grown = tenant.grow(0, std::stoull(bytes));
  return grown && grown->status == GPUROTA_OK ? "granted" : "refused";
}

// The child switches to its final user before its pid is printed.
pid_t make_child(bool nobody) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child != 0) {
    char ready = 0;
    ::close(ends[1]);
    (void)!::read(ends[0], &ready, 1);
    ::close(ends[0]);
    return child;
  }
  if (nobody && ::setuid(65534) != 0) ::_exit(1);
  ::close(ends[0]);
  ::close(ends[1]);
  // If no cgroup ends the child with the lease, it must not keep our output open for a reader.
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  ::alarm(60);
  ::pause();
  ::_exit(0);
}

pid_t g_between = 0;

pid_t make_grandchild() {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  g_between = ::fork();
  if (g_between == 0) {
    const pid_t child = make_child(false);
    (void)!::write(ends[1], &child, sizeof child);
    ::pause();
    ::_exit(0);
  }
  pid_t child = 0;
  return ::read(ends[0], &child, sizeof child) == sizeof child ? child : 0;
}

void follow_orders(const char* socket, std::uint64_t lease) {
  std::optional<WireTenant> tenant;
  say("waits");
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "fork" || line == "as nobody") {
      say(std::to_string(make_child(line != "fork")));
    } else if (line == "orphan") {
      say(std::to_string(make_grandchild()));
    } else if (line == "let go") {
      ::kill(g_between, SIGKILL);
      ::waitpid(g_between, nullptr, 0);
      say("orphaned");
    } else {
      if (!tenant && tenant.emplace(socket).hello(lease) != GPUROTA_OK) return say("no lease");
      say(grow(*tenant, line));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[2]) == "holds") {
    follow_orders(argv[1], std::stoull(argv[3]));
    return 0;
  }
  if (argc >= 5 && std::string(argv[2]) == "joins") {
    if (argc == 6 && ::setuid(static_cast<uid_t>(std::stoul(argv[5]))) != 0) return 1;
    join(argv[1], std::stoull(argv[3]), argv[4]);
  }
  if (argc < 4) {
    if (argc == 3) say("waits");
    if (argc == 3 && std::cin.get() == EOF) return 1;
    ask(argv[1]);
    ::pause();
  }
  WireTenant tenant(argv[1]);
  const bool welcome = tenant.hello(std::stoull(argv[2])) == GPUROTA_OK;
  say(welcome ? grow(tenant, argv[3]) : "refused");
  ::pause();
}
