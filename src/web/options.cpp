#include "web/options.h"

#include "base/options.h"
#include "base/text.h"
#include "proto/service.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <unistd.h>

namespace gpurota::web {
namespace {

constexpr std::string_view kBefore = R"(Usage: gpurota-web [OPTION]...

Serves what the daemon knows over HTTP: a page for people at /, where 'gpurota web' signs them in,
/metrics for Prometheus, /healthz (this process lives), /readyz (GPUs can be had: daemon, driver and
store are well).

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

Result<void> take_peer(Options& options, const std::string& text) {
  GPUROTA_ASSIGN_OR_RETURN(Peer peer, parse_peer(text));
  options.fleet.peers.push_back(std::move(peer));
  return {};
}

// Options for listening, and for what the page shows.
std::vector<Option> rows_of_page(Options& options) {
  return {
      {'\0', "--listen", [&](const std::string& value) { return take_listen(options, value); },
       "ADDRESS:PORT",
       "where, by default 127.0.0.1:9836, or where systemd listens for it\n"
       "(gpurota-web.socket). Port 0: any that is free"},
      {'\0', "--tls-certificate", &options.tls_certificate, "FILE"},
      {'\0', "--tls-key", &options.tls_key, "FILE",
       "serve https with these (PEM). They are read again when they change"},
      {'\0', "--plain", &options.plain, "", "listen without TLS where other machines can connect"},
      {'\0', "--allow-host", &options.site.hosts, "NAME",
       "answer to this name in the Host header too; may be repeated. IP\n"
       "addresses and localhost always are answered"},
      {'\0', "--url", [&](const std::string& value) { return take_url(options, value); }, "URL",
       "where people reach the page, for the links of 'gpurota web', if that\n"
       "is not where it listens: https://gpu1.example.org/"},
      {'\0', "--page", [&](const std::string& value) { return take_level(options, value); },
       "LEVEL",
       "what the page shows everybody who can connect. none: there is no\n"
       "page; totals (default): GPUs and sums, nobody's name; names: also who\n"
       "has which lease, and who waits. Notes and commands are never shown.\n"
       "signed-in: nothing, and names to those who have signed in"},
      {'\0', "--per-user", &options.site.extra.per_user, "",
       "also tell the leases and the memory in use of each user"},
      {'\0', "--per-lease", &options.site.extra.per_lease, "",
       "also tell the memory in use and the limit of each lease, with its user"},
      {'\0', "--per-pod", &options.site.extra.per_pod, "",
       "also tell the memory in use and the limit of each container of\nKubernetes"},
      {'\0', "--runtime-dir", &options.runtime_dir, "DIR", "the daemon whose sockets are there"}};
}

// Options for the server in front, and for the other machines of a fleet.
std::vector<Option> rows_of_others(Options& options) {
  return {{'\0', "--proxy-user-header", &options.proxy.user_header, "NAME"},
          {'\0', "--proxy", &options.proxy.peers, "ADDRESS"},
          {'\0', "--proxy-secret", &options.proxy.secret_file, "FILE",
           "the header in which a server in front says who its user is, that\n"
           "server's address (may be repeated), and a file with the secret that it\n"
           "shows in the header Gpurota-Proxy-Secret, which one on this machine\n"
           "must. The daemon takes it only with web.accept_proxy_users, and never\n"
           "for administrators"},
          {'\0', "--fleet-token", &options.fleet.token_file, "FILE",
           "a secret that the machines of a fleet share: who shows it is told this\n"
           "machine's totals (and who uses it, with --page names)"},
          {'\0', "--peer", [&](const std::string& value) { return take_peer(options, value); },
           "[NAME=]URL",
           "the page shows the totals of the machine whose gpurota-web is there,\n"
           "too; may be repeated. Needs --fleet-token"},
          {'\0', "--peer-ca", &options.fleet.ca_file, "FILE",
           "the certificates (PEM) that sign those of the peers, instead of the\nsystem's"}};
}

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

// The host in the form for a URL: an IPv6 address as "[::1]".
std::string url_host(const std::string& host) {
  return host.find(':') == host.npos ? host : "[" + host + "]";
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& words) {
  Options options;
  std::vector<Option> rows = rows_of_page(options);
  const auto others = rows_of_others(options);
  rows.insert(rows.end(), others.begin(), others.end());
  const Program program{"gpurota-web", proto::version(), kBefore, "\nSee gpurota-web(8).\n"};
  GPUROTA_ASSIGN_OR_RETURN(options.print, read_program_options(program, std::move(rows), words));
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
  // For "all addresses" use the machine's name, which others know.
  const bool any = host == "0.0.0.0" || host == "::";
  if (const std::string name = machine_name(); any && !name.empty()) host = name;
  return std::string(options.has_tls() ? "https://" : "http://") + url_host(host) + ":" +
         std::to_string(port) + "/";
}

}  // namespace gpurota::web
