#include "web/options.h"

#include "base/text.h"
#include "proto/service.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <getopt.h>
#include <unistd.h>

namespace gpurota::web {
namespace {

constexpr const char* kUsage = R"(Usage: gpurota-web [OPTION]...

Serves what the daemon knows over HTTP: a page for people at /, where 'gpurota web' signs them in,
/metrics for Prometheus, /healthz (this process lives), /readyz (GPUs can be had: daemon, driver and
store are well).

  --listen ADDRESS:PORT  where, by default 127.0.0.1:9836, or where systemd listens for it
                         (gpurota-web.socket). Port 0: any that is free
  --tls-certificate FILE, --tls-key FILE
                         serve https with these (PEM). They are read again when they change
  --plain                listen without TLS where other machines can connect
  --allow-host NAME      answer to this name in the Host header too; may be repeated. IP addresses and
                         localhost always are answered
  --url URL              where people reach the page, for the links of 'gpurota web', if that is not
                         where it listens: https://gpu1.example.org/
  --page LEVEL           what the page shows everybody who can connect. none: there is no page;
                         totals (default): GPUs and sums, nobody's name; names: also who has which
                         lease, and who waits. Notes and commands are never shown. signed-in: nothing,
                         and names to those who have signed in
  --proxy-user-header NAME, --proxy ADDRESS, --proxy-secret FILE
                         the header in which a server in front says who its user is, that server's
                         address (may be repeated), and a file with the secret that it shows in the
                         header Gpurota-Proxy-Secret, which one on this machine must. The daemon takes
                         it only with web.accept_proxy_users, and never for administrators
  --fleet-token FILE     a secret that the machines of a fleet share: who shows it is told this
                         machine's totals (and who uses it, with --page names)
  --peer [NAME=]URL      the page shows the totals of the machine whose gpurota-web is there, too; may
                         be repeated. Needs --fleet-token
  --peer-ca FILE         the certificates (PEM) that sign those of the peers, instead of the system's
  --per-user             also tell the leases and the memory in use of each user
  --per-lease            also tell the memory in use and the limit of each lease, with its user
  --per-pod              also tell the memory in use and the limit of each container of Kubernetes
  --runtime-dir DIR      the daemon whose sockets are there
  --help, --version
)";

Result<void> take_level(Options& options, const std::string& word) {
  const auto level = parse_page_level(word);
  if (!level) {
    return fail(Code::kInvalid, "unknown --page '" + display_text(word) +
                                    "': write none, totals, names or signed-in");
  }
  options.site.level = *level;
  return {};
}

Result<void> take_url(Options& options, std::string url) {
  const std::string written = url;
  if (!url.ends_with('/')) url += '/';
  const bool plain = std::all_of(url.begin(), url.end(),
                                 [](char c) { return c > ' ' && c < 127 && c != '#' && c != '?'; });
  if (!plain || !(url.starts_with("http://") || url.starts_with("https://"))) {
    return fail(Code::kInvalid,
                "--url: '" + display_text(written, 60) +
                    "' is not the address of a page: write https://gpu1.example.org/");
  }
  options.url = std::move(url);
  return {};
}

Result<void> take_listen(Options& options, const std::string& text) {
  GPUROTA_ASSIGN_OR_RETURN(options.listen, parse_listen(text));
  options.names_listen = true;
  return {};
}

// An option, and what it does with its value, which is empty for a switch.
struct Known {
  const char* name;
  bool has_value;
  Result<void> (*take)(Options& options, const std::string& value);
};

template <auto Member>
Result<void> set(Options& options, const std::string& value) {
  options.*Member = value;
  return {};
}

const Known kKnown[] = {
    {"listen", true, take_listen},
    {"tls-certificate", true, set<&Options::tls_certificate>},
    {"tls-key", true, set<&Options::tls_key>},
    {"plain", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.plain = true;
       return {};
     }},
    {"allow-host", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.site.hosts.push_back(value);
       return {};
     }},
    {"url", true,
     [](Options& options, const std::string& value) { return take_url(options, value); }},
    {"page", true, take_level},
    {"proxy", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.proxy.peers.push_back(value);
       return {};
     }},
    {"proxy-user-header", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.proxy.user_header = value;
       return {};
     }},
    {"proxy-secret", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.proxy.secret_file = value;
       return {};
     }},
    {"fleet-token", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.fleet.token_file = value;
       return {};
     }},
    {"peer", true,
     [](Options& options, const std::string& value) -> Result<void> {
       GPUROTA_ASSIGN_OR_RETURN(Peer peer, parse_peer(value));
       options.fleet.peers.push_back(std::move(peer));
       return {};
     }},
    {"peer-ca", true,
     [](Options& options, const std::string& value) -> Result<void> {
       options.fleet.ca_file = value;
       return {};
     }},
    {"per-user", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.site.extra.per_user = true;
       return {};
     }},
    {"per-lease", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.site.extra.per_lease = true;
       return {};
     }},
    {"per-pod", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.site.extra.per_pod = true;
       return {};
     }},
    {"runtime-dir", true, set<&Options::runtime_dir>},
    {"help", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.print = kUsage;
       return {};
     }},
    {"version", false,
     [](Options& options, const std::string&) -> Result<void> {
       options.print = "gpurota-web " + std::string(proto::version()) + "\n";
       return {};
     }},
};

Result<void> check_together(const Options& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return fail(Code::kInvalid, "give --tls-certificate and --tls-key together");
  }
  if (options.has_tls() && options.plain) {
    return fail(Code::kInvalid, "give --plain, or a certificate, not both");
  }
  for (const Peer& peer : options.fleet.peers) {
    if (options.plain || !is_open(peer)) continue;
    return fail(Code::kInvalid, "--peer " + peer.url +
                                    ": whoever is between could read the token: write https://, or "
                                    "give --plain where that is no matter");
  }
  return check_address(options, options.listen);
}

// "[::1]" in a URL.
std::string url_host(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  std::array<option, std::size(kKnown) + 1> names{};
  constexpr int kFirst = 1000;
  for (std::size_t i = 0; i < std::size(kKnown); ++i) {
    names[i] = {kKnown[i].name, kKnown[i].has_value ? required_argument : no_argument, nullptr,
                kFirst + static_cast<int>(i)};
  }
  Options options;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "hV", names.data(), nullptr)) != -1;) {
    const auto is_named = [&](std::string_view name) {
      return (c == 'h' && name == "help") || (c == 'V' && name == "version");
    };
    const auto known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& each) {
      return c - kFirst == &each - kKnown || is_named(each.name);
    });
    if (known == std::end(kKnown)) {
      return fail(Code::kInvalid, "an option is unknown or its value is missing, see --help");
    }
    GPUROTA_TRY(known->take(options, optarg ? optarg : ""));
  }
  if (optind < argc) return fail(Code::kInvalid, "gpurota-web takes no arguments, see --help");
  if (options.print.empty()) GPUROTA_TRY(check_together(options));
  return options;
}

Result<void> check_address(const Options& options, const ListenAddress& address) {
  if (is_loopback(address) || options.has_tls() || options.plain) return {};
  return fail(Code::kInvalid,
              "--listen: other machines can connect to " + address.host +
                  ": give --tls-certificate and --tls-key, or --plain where whoever is between may "
                  "read and change everything");
}

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string page_url(const Options& options, int port) {
  if (!options.url.empty()) return options.url;
  std::string host = options.listen.host;
  // Every address of this machine: its name is one that others know.
  const bool any = host == "0.0.0.0" || host == "::";
  if (const std::string name = machine_name(); any && !name.empty()) host = name;
  return std::string(options.has_tls() ? "https://" : "http://") + url_host(host) + ":" +
         std::to_string(port) + "/";
}

}  // namespace gpurota::web
