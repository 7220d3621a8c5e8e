#include "web/host_check.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include <arpa/inet.h>

namespace gpurota::web {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

bool is_address(const std::string& host) {
  if (host.find('\0') != host.npos) return false;  // inet_pton would stop there
  in_addr four{};
  in6_addr six{};
  return ::inet_pton(AF_INET, host.c_str(), &four) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "[::1]:80" -> "::1"; "name:80" -> "name"; empty if anything but a port follows.
std::string host_of(std::string_view header) {
  const bool bracketed = header.starts_with("[");
  const std::size_t end = bracketed ? header.find(']') : std::min(header.rfind(':'), header.size());
  if (end == header.npos) return "";
  std::string_view port = header.substr(end + (bracketed ? 1 : 0));
  if (!port.empty() && port.front() != ':') return "";
  port.remove_prefix(port.empty() ? 0 : 1);
  if (!std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return "";
  return std::string(bracketed ? header.substr(1, end - 1) : header.substr(0, end));
}

}  // namespace

Result<ListenAddress> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view port = colon == text.npos ? text : text.substr(colon + 1);
  ListenAddress address{colon == text.npos || colon == 0 ? kLoopback : host_of(text), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool number = error == std::errc() && end == port.data() + port.size();
  if (!number || address.port < 0 || address.port > 65535 || !is_address(address.host)) {
    return fail(Code::kInvalid, fmt::format("--listen: '{}' is not an address and a port: write "
                                            "127.0.0.1:9836 or [::1]:9836",
                                            display_text(text, 60)));
  }
  return address;
}

bool is_loopback(const ListenAddress& address) {
  return address.host.starts_with("127.") || address.host == "::1";
}

bool is_our_host(std::string_view header, const std::vector<std::string>& allowed) {
  const std::string host = lower(host_of(header));
  if (host == "localhost" || is_address(host)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& name) { return lower(name) == host; });
}

}  // namespace gpurota::web
