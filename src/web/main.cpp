// gpurota-web: serves the web page, /metrics, /healthz and /readyz. A client of the daemon without rights of its own; who is signed in at the page
// acts by their own.
#include "base/standard_streams.h"
#include "web/http_server.h"
#include "web/options.h"
#include "web/signed_in.h"
#include "web/site.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

namespace gpurota::web {
namespace {

void complain(const std::string& message) {
  std::fprintf(stderr, "gpurota-web: %s\n", message.c_str());
}

Result<std::unique_ptr<HttpServer>> listen(const Options& options, Site& site,
                                           SignedIn& signed_in) {
  std::unique_ptr<Tls> tls;
  if (options.has_tls()) {
    GPUROTA_ASSIGN_OR_RETURN(tls, make_tls(options.tls_certificate, options.tls_key));
  }
  return HttpServer::listen(options.listen,
                            {.quick = [&](const HttpRequest& asked) { return site.quick(asked); },
                             .slow = [&](const HttpRequest& asked) { return site.slow(asked); },
                             .event = [&] { return site.event(); },
                             .act = [&](const HttpRequest& asked) { return signed_in.act(asked); },
                             .complain = complain},
                            std::move(tls));
}

void say_where(const Options& options, int port) {
  Options here = options;
  here.url.clear();
  std::string where = page_url(here, port);
  where.pop_back();
  std::printf("gpurota-web listens on %s\n", where.c_str());
  if (options.site.level != PageLevel::kNone && page_assets().empty()) {
    std::printf("gpurota-web was built without the page: it serves /metrics and /api/ only\n");
  }
  (void)std::fflush(stdout);
}

Result<void> serve(const Options& options) {
  const bool has_page = options.site.level != PageLevel::kNone && !page_assets().empty();
  GPUROTA_ASSIGN_OR_RETURN(Proxy proxy, Proxy::make(options.proxy));
  SignedIn signed_in(client::locate(options.runtime_dir), std::move(proxy), complain);
  GPUROTA_ASSIGN_OR_RETURN(const auto fleet, Fleet::make(options.fleet));
  Site::Options shown = options.site;
  shown.machine = machine_name();
  Site site(client::locate(options.runtime_dir), std::move(shown), page_assets(),
            has_page ? &signed_in : nullptr, fleet.get());
  GPUROTA_ASSIGN_OR_RETURN(const auto server, listen(options, site, signed_in));
  GPUROTA_TRY(fleet->begin());
  say_where(options, server->port());
  if (has_page) GPUROTA_TRY(signed_in.begin(page_url(options, server->port())));
  for (;;) server->serve();
}

}  // namespace
}  // namespace gpurota::web

int main(int argc, char** argv) {
  using gpurota::web::complain;
  gpurota::occupy_closed_streams();
  const auto options = gpurota::web::parse_options(argc, argv);
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
  } catch (const std::exception& error) {  // where no memory can be had
    complain(error.what());
    return 1;
  }
}
