// A server in front of gpurota-web that authenticates users: decides whether a peer's header names
// a user. Pure, except for reading the secret's file. The check alone is not enough: the daemon
// accepts such a name only where the site allows it (docs/design/web-sessions.md).
#pragma once

#include "base/result.h"
#include "web/http_request.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::web {

class Proxy {
 public:
  struct Options {
    std::vector<std::string> peers{};  // addresses
    std::string user_header{};         // "X-Remote-User"; empty: there is no such server
    std::string secret_file{};         // empty: no secret is required
  };
  // The header with the secret, if one is required.
  static constexpr std::string_view kSecretHeader = "gpurota-proxy-secret";

  Proxy() = default;
  // kInvalid: the options contradict each other, or would let anybody on this machine be anybody.
  static Result<Proxy> make(const Options& options);

  bool is_used() const { return !user_header_.empty(); }
  // The user that the request names; empty if it names none. Error: the request names a user
  // without being allowed to.
  Result<std::string> user_of(const HttpRequest& request) const;

 private:
  std::vector<std::string> peers_;
  std::string user_header_;  // in lower case
  std::string secret_;
};

}  // namespace gpurota::web
