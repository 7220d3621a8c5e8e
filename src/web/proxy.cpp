#include "web/proxy.h"

#include "base/same_secret.h"
#include "base/text.h"
#include "web/secret_file.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <arpa/inet.h>

namespace gpurota::web {
namespace {

constexpr std::size_t kLongestName = 256;

// The address in the kernel's form, so that it can be compared; nullopt if `text` is not an
// address.
std::optional<std::string> plain_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> written{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), bytes.data()) != 1) continue;
    if (!::inet_ntop(family, bytes.data(), written.data(), written.size())) return std::nullopt;
    return written.data();
  }
  return std::nullopt;
}

bool is_of_this_machine(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

bool is_header_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-';
  });
}

}  // namespace

Result<Proxy> Proxy::make(const Options& options) {
  Proxy proxy;
  if (options.user_header.empty()) {
    if (options.peers.empty() && options.secret_file.empty()) return proxy;
    return fail(Code::kInvalid, "--proxy and --proxy-secret need --proxy-user-header");
  }
  if (!is_header_name(options.user_header)) {
    return fail(Code::kInvalid, "--proxy-user-header: '" + display_text(options.user_header, 60) +
                                    "' is not the name of a header: write X-Remote-User");
  }
  if (options.peers.empty()) {
    return fail(Code::kInvalid, "--proxy-user-header needs --proxy ADDRESS: whose header it is");
  }
  for (const std::string& peer : options.peers) {
    const auto address = plain_address(peer);
    if (!address) {
      return fail(Code::kInvalid, "--proxy: '" + display_text(peer, 60) +
                                      "' is not an address: write 192.0.2.7 or 2001:db8::7");
    }
    if (is_of_this_machine(*address) && options.secret_file.empty()) {
      return fail(Code::kInvalid, "--proxy " + *address +
                                      ": every user of this machine has this "
                                      "address, so give --proxy-secret FILE, too");
    }
    proxy.peers_.push_back(*address);
  }
  for (const char c : options.user_header) {
    proxy.user_header_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (!options.secret_file.empty()) {
    GPUROTA_ASSIGN_OR_RETURN(proxy.secret_, read_secret("--proxy-secret", options.secret_file));
  }
  return proxy;
}

Result<std::string> Proxy::user_of(const HttpRequest& request) const {
  if (!is_used()) return std::string();
  const auto count =
      std::count_if(request.headers.begin(), request.headers.end(),
                    [this](const auto& header) { return header.first == user_header_; });
  if (count == 0) return std::string();
  const auto user = request.header(user_header_);
  if (!user || user->empty() || user->size() > kLongestName) {
    return fail(Code::kDenied, "the header with the user's name is malformed");
  }
  if (std::find(peers_.begin(), peers_.end(), request.peer) == peers_.end()) {
    return fail(Code::kDenied, "this address may not say who its users are");
  }
  const auto secret = request.header(kSecretHeader);
  if (!secret_.empty() && (!secret || !is_same_secret(secret_, *secret))) {
    return fail(Code::kDenied, "the proxy has not shown its secret");
  }
  return std::string(*user);
}

}  // namespace gpurota::web
