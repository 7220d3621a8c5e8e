#include "web/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::web {
namespace {

// The first descriptor that systemd passes (sd_listen_fds(3)).
constexpr int kFirstPassed = 3;
constexpr int kMostPassed = 16;
constexpr int kFirstOfAll = 1024;  // ports below need root

union Address {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
};

socklen_t fill(Address& to, const ListenAddress& from) {
  const auto port = htons(static_cast<std::uint16_t>(from.port));
  to = {};
  if (::inet_pton(AF_INET, from.host.c_str(), &to.four.sin_addr) == 1) {
    to.four.sin_family = AF_INET;
    to.four.sin_port = port;
    return sizeof to.four;
  }
  to = {};
  (void)::inet_pton(AF_INET6, from.host.c_str(), &to.six.sin6_addr);
  to.six.sin6_family = AF_INET6;
  to.six.sin6_port = port;
  return sizeof to.six;
}

// The address as text. An IPv4 address on an IPv6 socket is shown as IPv4.
std::string text_of(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = address.any.sa_family == AF_INET;
  const void* const bytes = four ? static_cast<const void*>(&address.four.sin_addr)
                                 : static_cast<const void*>(&address.six.sin6_addr);
  if (!::inet_ntop(address.any.sa_family, bytes, text.data(), text.size())) return "";
  const std::string found = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  return found.starts_with(kMapped) && found.find('.') != found.npos ? found.substr(kMapped.size())
                                                                     : found;
}

std::string group_of(Address address, const std::string& text) {
  if (is_loopback({text, 0})) return "this machine";
  if (text.find(':') == text.npos) return text;
  std::memset(&address.six.sin6_addr.s6_addr[8], 0, 8);
  return text_of(address);
}

Result<ListenAddress> read_address(int socket) {
  Address address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, &address.any, &size) != 0) {
    return fail_errno("it is not a socket", errno);
  }
  if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6) {
    return fail(Code::kInvalid, "it is not at an address and a port");
  }
  const bool four = address.any.sa_family == AF_INET;
  return ListenAddress{text_of(address),
                       ntohs(four ? address.four.sin_port : address.six.sin6_port)};
}

int number_in(const char* name) {
  const char* const text = std::getenv(name);
  const std::string_view given = text ? text : "";
  int number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  return error == std::errc() && end == given.data() + given.size() ? number : 0;
}

bool listens(int socket) {
  int yes = 0;
  socklen_t size = sizeof yes;
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &yes, &size) == 0 && yes != 0;
}

}  // namespace

Result<Listener> listen_at(const ListenAddress& where) {
  Address address;
  const socklen_t size = fill(address, where);
  Fd socket(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail_errno("cannot make a socket", errno);
  // Not SO_REUSEPORT: a second instance would share the port, and so could another program.
  const int yes = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), &address.any, size) != 0 || ::listen(socket.get(), 128) != 0) {
    auto failed =
        fail_errno(fmt::format("cannot listen on {} port {}", where.host, where.port), errno);
    if (failed.value().native == EADDRINUSE) {
      failed.value().message += fmt::format(
          ": `ss -ltnp 'sport = :{}'` (as root) shows which program does; see 'The port' "
          "in gpurota-web(8)",
          where.port);
    }
    return failed;
  }
  GPUROTA_ASSIGN_OR_RETURN(auto told, read_address(socket.get()));
  return Listener{std::move(socket), std::move(told)};
}

Result<std::vector<Listener>> take_passed_listeners() {
  const bool ours = number_in("LISTEN_PID") == static_cast<int>(::getpid());
  const int count = ours ? std::clamp(number_in("LISTEN_FDS"), 0, kMostPassed) : 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) (void)::unsetenv(name);
  std::vector<Listener> passed;
  for (int fd = kFirstPassed; fd < kFirstPassed + count; ++fd) {
    Fd socket(fd);
    auto address = read_address(fd);
    if (address && !listens(fd)) address = fail(Code::kInvalid, "it does not listen");
    if (!address) {
      return fail(Code::kInvalid,
                  fmt::format("systemd passes something that gpurota-web does not serve: {}; write "
                              "ListenStream=ADDRESS:PORT in gpurota-web.socket",
                              address.error().message));
    }
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    passed.push_back({std::move(socket), std::move(*address)});
  }
  return passed;
}

bool is_kept_for_root(const ListenAddress& address) {
  return address.port > 0 && address.port < kFirstOfAll;
}

std::optional<Visitor> accept_visitor(const Listener& listener) {
  Address address{};
  socklen_t size = sizeof address;
  Fd socket(::accept4(listener.socket.get(), &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return std::nullopt;
  std::string text = text_of(address);
  std::string group = group_of(address, text);
  return Visitor{std::move(socket), std::move(text), std::move(group)};
}

}  // namespace gpurota::web
