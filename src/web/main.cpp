// gpurota-web: serves /metrics, /healthz and /readyz. An ordinary client of the daemon, read-only.
#include "base/standard_streams.h"
#include "proto/service.h"
#include "web/host_check.h"
#include "web/http_server.h"
#include "web/source.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <getopt.h>

namespace gpurota::web {
namespace {

constexpr const char* kUsage = R"(Usage: gpurota-web [OPTION]...

Serves what the daemon knows over HTTP, read-only: /metrics for Prometheus, /healthz (this process
lives), /readyz (GPUs can be had: daemon, driver and store are well).

  --listen ADDRESS:PORT  where, by default 127.0.0.1:9836. Port 0: any that is free
  --allow-host NAME      answer to this name in the Host header too; may be repeated. IP addresses and
                         localhost always are answered
  --per-user             also tell the leases and the memory in use of each user
  --per-lease            also tell the memory in use and the limit of each lease, with its user
  --runtime-dir DIR      the daemon whose sockets are there
  --help, --version
)";

struct Options {
  ListenAddress listen{"127.0.0.1", 9836};
  std::vector<std::string> hosts;
  std::optional<std::string> runtime_dir;
  Extra extra;
  const char* print = nullptr;  // and be done
};

Result<Options> parse_options(int argc, char** argv) {
  const option known[] = {{"listen", required_argument, nullptr, 'l'},
                          {"allow-host", required_argument, nullptr, 'a'},
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
        options.hosts.emplace_back(optarg);
        break;
      case 'u':
        options.extra.per_user = true;
        break;
      case 'p':
        options.extra.per_lease = true;
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

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::optional<HttpResponse> answer_at_once(const HttpRequest& request,
                                           const std::vector<std::string>& hosts) {
  if (!is_our_host(request.host, hosts)) {
    return HttpResponse{421, "this name is not served here: see --allow-host of gpurota-web\n"};
  }
  if (request.method != "GET" && request.method != "HEAD") return HttpResponse{405, "only GET\n"};
  if (request.path == "/healthz") return HttpResponse{200, "ok\n"};
  if (request.path == "/metrics" || request.path == "/readyz") return std::nullopt;
  return HttpResponse{404, "not found: try /metrics, /healthz or /readyz\n"};
}

HttpResponse answer_from(Source& source, const HttpRequest& request, Extra extra) {
  if (request.path == "/metrics") {
    return {200, metrics_text(source.get(), wall_now(), extra),
            "text/plain; version=0.0.4; charset=utf-8"};
  }
  const std::string why = not_ready_because(source.get());
  return why.empty() ? HttpResponse{200, "ready\n"} : HttpResponse{503, why + "\n"};
}

int serve(const Options& options) {
  Source source(client::locate(options.runtime_dir));
  const auto server = HttpServer::listen(
      options.listen,
      {[&](const HttpRequest& asked) { return answer_at_once(asked, options.hosts); },
       [&](const HttpRequest& asked) { return answer_from(source, asked, options.extra); }});
  if (!server) {
    std::fprintf(stderr, "gpurota-web: %s\n", server.error().message.c_str());
    return 1;
  }
  const std::string& host = options.listen.host;
  std::printf("gpurota-web listens on http://%s:%d\n",
              host.find(':') == host.npos ? host.c_str() : ("[" + host + "]").c_str(),
              (*server)->port());
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
