// The addresses on which gpurota-web listens, and the Host headers that it accepts. Pure.
//
// A page in somebody's browser may make a name of its own point to 127.0.0.1 and read what is
// served there (DNS rebinding). The Host header then has that name, and the request is refused.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace gpurota::web {

struct ListenAddress {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0: any free port
  bool operator==(const ListenAddress&) const = default;
};

// "127.0.0.1:9836", "[::1]:9836", ":9836" (loopback), "9836" (loopback).
Result<ListenAddress> parse_listen(std::string_view text);

// Whether only this machine can reach the address.
bool is_loopback(const ListenAddress& address);

// Whether a request with this Host header is meant for us: an IP address, localhost, or one of the
// names that the site allows; with or without a port.
bool is_our_host(std::string_view header, const std::vector<std::string>& allowed);

}  // namespace gpurota::web
