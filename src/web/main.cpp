// gpurota-web: serves the web page, /metrics, /healthz and /readyz. A client of the daemon without
// special rights; a user signed in at the page acts with their own rights.
#include "base/standard_streams.h"
#include "web/http_server.h"
#include "web/listener.h"
#include "web/options.h"
#include "web/signed_in.h"
#include "web/site.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace gpurota::web {
namespace {

std::uint64_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

void complain(const std::string& message) {
  std::fprintf(stderr, "gpurota-web: %s\n", message.c_str());
}

std::string text_of(const ListenAddress& address) {
  const bool six = address.host.find(':') != address.host.npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

// The listeners of systemd, or our own if there are none or --listen names another address. Sets
// `options.listen` to the address of the first listener.
Result<std::vector<Listener>> listen(Options& options) {
  GPUROTA_ASSIGN_OR_RETURN(std::vector<Listener> listeners, take_passed_listeners());
  const bool elsewhere =
      options.names_listen &&
      std::none_of(listeners.begin(), listeners.end(),
                   [&](const Listener& each) { return each.address == options.listen; });
  if (!listeners.empty() && elsewhere) {
    complain("gpurota-web.socket listens on " + text_of(listeners.front().address) +
             ", and --listen says " + text_of(options.listen) +
             ", which is served: set ListenStream= there to this, and leave --listen out");
    listeners.clear();
  }
  const bool passed = !listeners.empty();
  if (!passed) {
    GPUROTA_ASSIGN_OR_RETURN(Listener own, listen_at(options.listen));
    listeners.push_back(std::move(own));
  }
  for (const Listener& each : listeners) GPUROTA_TRY(check_address(options, each.address));
  options.listen = listeners.front().address;
  options.keeps_port = passed || is_kept_for_root(options.listen);
  return listeners;
}

Result<std::unique_ptr<HttpServer>> make_server(const Options& options,
                                                std::vector<Listener> listeners, Site& site,
                                                SignedIn& signed_in) {
  std::unique_ptr<Tls> tls;
  if (options.has_tls()) {
    GPUROTA_ASSIGN_OR_RETURN(tls, make_tls(options.tls_certificate, options.tls_key));
  }
  return HttpServer::make(std::move(listeners),
                          {.quick = [&](const HttpRequest& asked) { return site.quick(asked); },
                           .slow = [&](const HttpRequest& asked) { return site.slow(asked); },
                           .event = [&] { return site.event(); },
                           .act = [&](const HttpRequest& asked) { return signed_in.act(asked); },
                           .complain = complain},
                          HttpServer::places_for(descriptor_limit()), std::move(tls));
}

void say_where(const Options& options, bool has_page) {
  Options here = options;
  here.url.clear();
  std::string where = page_url(here, options.listen.port);
  where.pop_back();
  std::printf("gpurota-web listens on %s\n", where.c_str());
  if (options.site.level != PageLevel::kNone && page_assets().empty()) {
    std::printf("gpurota-web was built without the page: it serves /metrics and /api/ only\n");
  }
  if (has_page && !options.keeps_port) {
    std::printf(
        "While it is not running, another user of this machine can take port %d and show a page of "
        "their own there: start it by gpurota-web.socket, or give it a port below 1024 "
        "(gpurota-web(8), THE PORT)\n",
        options.listen.port);
  }
  (void)std::fflush(stdout);
}

// The address of the page; if there is none, the reason, which 'gpurota web' prints.
std::string address_for_daemon(const Options& options) {
  if (options.site.level == PageLevel::kNone) return "no-page:off";
  return page_assets().empty() ? "no-page:not-built" : page_url(options, options.listen.port);
}

Result<void> serve(Options options) {
  const bool has_page = options.site.level != PageLevel::kNone && !page_assets().empty();
  GPUROTA_ASSIGN_OR_RETURN(auto listeners, listen(options));
  GPUROTA_ASSIGN_OR_RETURN(Proxy proxy, Proxy::make(options.proxy));
  SignedIn signed_in(client::locate(options.runtime_dir), std::move(proxy), complain);
  GPUROTA_ASSIGN_OR_RETURN(const auto fleet, Fleet::make(options.fleet));
  Site::Options shown = options.site;
  shown.machine = machine_name();
  Site site(client::locate(options.runtime_dir), std::move(shown), page_assets(),
            has_page ? &signed_in : nullptr, fleet.get());
  GPUROTA_ASSIGN_OR_RETURN(const auto server,
                           make_server(options, std::move(listeners), site, signed_in));
  GPUROTA_TRY(fleet->begin());
  say_where(options, has_page);
  GPUROTA_TRY(signed_in.begin(address_for_daemon(options)));
  for (;;) server->serve();
}

}  // namespace
}  // namespace gpurota::web

int main(int argc, char** argv) {
  using gpurota::web::complain;
  gpurota::occupy_closed_streams();
  const auto options = gpurota::web::parse_options({argv + (argc > 0), argv + argc});
  if (!options) {
    complain(options.error().message);
    return 2;
  }
  if (!options->print.empty()) return std::fputs(options->print.c_str(), stdout) < 0;
  (void)std::signal(SIGPIPE, SIG_IGN);
  try {
    const auto served = gpurota::web::serve(*options);
    if (!served) {
      complain(served.error().message);
      return served.error().code == gpurota::Code::kInvalid ? 2 : 1;
    }
  } catch (const std::exception& error) {  // out of memory
    complain(error.what());
    return 1;
  }
}
