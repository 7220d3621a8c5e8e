// A server in front of gpurota-web that has found out who its users are: which header of which peer
// is the name of a user. Pure, but for reading the file of the secret. gpurota-web's acceptance of
// such a name is not enough: the daemon accepts it only where the site says so
// (docs/design/web-sessions.md).
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
    std::string secret_file{};         // empty: it shows none
  };
  // The header with the secret, where there is one.
  static constexpr std::string_view kSecretHeader = "gpurota-proxy-secret";

  Proxy() = default;
  // kInvalid: the options do not go together, or would let anybody on this machine be anybody.
  static Result<Proxy> make(const Options& options);

  bool is_used() const { return !user_header_.empty(); }
  // The user of the request. Empty: it names nobody. An error: it names somebody, and may not.
  Result<std::string> user_of(const HttpRequest& request) const;

 private:
  std::vector<std::string> peers_;
  std::string user_header_;  // in lower case
  std::string secret_;
};

}  // namespace gpurota::web
