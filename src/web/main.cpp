// gpurota-web: serves the web page, /metrics, /healthz and /readyz. An ordinary client of the daemon, read-only.
#include "base/standard_streams.h"
#include "base/text.h"
#include "proto/service.h"
#include "web/host_check.h"
#include "web/http_server.h"
#include "web/site.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <getopt.h>

namespace gpurota::web {
namespace {

constexpr const char* kUsage = R"(Usage: gpurota-web [OPTION]...

Serves what the daemon knows over HTTP, read-only: a page for people at /, /metrics for Prometheus,
/healthz (this process lives), /readyz (GPUs can be had: daemon, driver and store are well).

  --listen ADDRESS:PORT  where, by default 127.0.0.1:9836. Port 0: any that is free
  --allow-host NAME      answer to this name in the Host header too; may be repeated. IP addresses and
                         localhost always are answered
  --page LEVEL           what the page shows everybody who can connect. none: there is no page;
                         totals (default): GPUs and sums, nobody's name; names: also who has which
                         lease, and who waits. Notes and commands are never shown
  --per-user             also tell the leases and the memory in use of each user
  --per-lease            also tell the memory in use and the limit of each lease, with its user
  --runtime-dir DIR      the daemon whose sockets are there
  --help, --version
)";

struct Options {
  ListenAddress listen{"127.0.0.1", 9836};
  std::optional<std::string> runtime_dir;
  Site::Options site;
  const char* print = nullptr;  // and be done
};

Result<PageLevel> parse_level(const char* word) {
  if (const auto level = parse_page_level(word)) return *level;
  return fail(Code::kInvalid,
              "unknown --page '" + display_text(word) + "': write none, totals or names");
}

Result<Options> parse_options(int argc, char** argv) {
  const option known[] = {{"listen", required_argument, nullptr, 'l'},
                          {"allow-host", required_argument, nullptr, 'a'},
                          {"page", required_argument, nullptr, 'P'},
                          {"per-user", no_argument, nullptr, 'u'},
                          {"per-lease", no_argument, nullptr, 'p'},
                          {"runtime-dir", required_argument, nullptr, 'r'},
                          {"help", no_argument, nullptr, 'h'},
                          {"version", no_argument, nullptr, 'V'},
                          {nullptr, 0, nullptr, 0}};
  static const std::string version = "gpurota-web " + std::string(proto::version()) + "\n";
  Options options;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "hV", known, nullptr)) != -1;) {
    switch (c) {
      case 'l': {
        GPUROTA_ASSIGN_OR_RETURN(options.listen, parse_listen(optarg));
        break;
      }
      case 'a':
        options.site.hosts.emplace_back(optarg);
        break;
      case 'P': {
        GPUROTA_ASSIGN_OR_RETURN(options.site.level, parse_level(optarg));
        break;
      }
      case 'u':
        options.site.extra.per_user = true;
        break;
      case 'p':
        options.site.extra.per_lease = true;
        break;
      case 'r':
        options.runtime_dir = optarg;
        break;
      case 'h':
        options.print = kUsage;
        break;
      case 'V':
        options.print = version.c_str();
        break;
      default:
        return fail(Code::kInvalid, "an option is unknown or its value is missing, see --help");
    }
  }
  if (optind < argc) return fail(Code::kInvalid, "gpurota-web takes no arguments, see --help");
  return options;
}

int serve(const Options& options) {
  Site site(client::locate(options.runtime_dir), options.site, page_assets());
  const auto server = HttpServer::listen(
      options.listen, {.quick = [&](const HttpRequest& asked) { return site.quick(asked); },
                       .slow = [&](const HttpRequest& asked) { return site.slow(asked); },
                       .event = [&] { return site.event(); }});
  if (!server) {
    std::fprintf(stderr, "gpurota-web: %s\n", server.error().message.c_str());
    return 1;
  }
  const std::string& host = options.listen.host;
  std::printf("gpurota-web listens on http://%s:%d\n",
              host.find(':') == host.npos ? host.c_str() : ("[" + host + "]").c_str(),
              (*server)->port());
  if (options.site.level != PageLevel::kNone && page_assets().empty()) {
    std::printf("gpurota-web was built without the page: it serves /metrics and /api/ only\n");
  }
  (void)std::fflush(stdout);
  for (;;) (*server)->serve();
}

}  // namespace
}  // namespace gpurota::web

int main(int argc, char** argv) {
  gpurota::occupy_closed_streams();
  const auto options = gpurota::web::parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr, "gpurota-web: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->print) return std::fputs(options->print, stdout) < 0;
  (void)std::signal(SIGPIPE, SIG_IGN);
  try {
    return gpurota::web::serve(*options);
  } catch (const std::exception& error) {  // where no memory can be had
    std::fprintf(stderr, "gpurota-web: %s\n", error.what());
    return 1;
  }
}
