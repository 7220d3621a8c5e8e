// The command line of gpurota-web. Pure, but for looking up the daemon's folder.
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
  bool plain = false;         // without TLS, also where others can listen in
  std::string tls_certificate{}, tls_key{};
  std::optional<std::string> runtime_dir{};
  Site::Options site{};
  std::string url{};  // of the page; empty: where it listens
  Proxy::Options proxy{};
  Fleet::Options fleet{};
  bool keeps_port = false;  // nobody else can have it while we do not run
  std::string print{};      // and be done

  bool has_tls() const { return !tls_certificate.empty(); }
};

// `words`: argv without argv[0].
Result<Options> parse_options(const std::vector<std::string>& words);

// Whether it may serve there as it is asked to: elsewhere than at this machine by TLS, or knowingly
// without.
Result<void> check_address(const Options& options, const ListenAddress& address);

// The name of this machine.
std::string machine_name();

// Where people reach the page: as the options say, else where it listens.
std::string page_url(const Options& options, int port);

}  // namespace gpurota::web
