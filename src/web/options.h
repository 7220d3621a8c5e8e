// The command line of gpurota-web. Pure, except that it looks up the daemon's folder.
#pragma once

#include "base/result.h"
#include "web/host_check.h"
#include "web/proxy.h"
#include "web/site.h"

#include <optional>
#include <string>
#include <vector>

namespace gpurota::web {

struct Options {
  ListenAddress listen{"127.0.0.1", 9836};
  bool names_listen = false;  // --listen is given
  bool plain = false;         // without TLS, even where others can eavesdrop
  std::string tls_certificate{}, tls_key{};
  std::optional<std::string> runtime_dir{};
  Site::Options site{};
  std::string url{};  // of the page; empty: where gpurota-web listens
  Proxy::Options proxy{};
  Fleet::Options fleet{};
  bool keeps_port = false;  // no other user can take the port while gpurota-web is not running
  std::string print{};      // text to print before exiting

  bool has_tls() const { return !tls_certificate.empty(); }
};

// `words`: argv without argv[0].
Result<Options> parse_options(const std::vector<std::string>& words);

// Whether gpurota-web may serve at this address: beyond this machine only by TLS, or explicitly
// without TLS.
Result<void> check_address(const Options& options, const ListenAddress& address);

// The name of this machine.
std::string machine_name();

// The URL of the page: from the options, else where gpurota-web listens.
std::string page_url(const Options& options, int port);

}  // namespace gpurota::web
