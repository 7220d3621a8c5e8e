// gpurota-web: serves /metrics, /healthz and /readyz. An ordinary client of the daemon, read-only.
#include "base/standard_streams.h"
#include "proto/service.h"
#include "web/host_check.h"
#include "web/source.h"

#include <httplib.h>

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
  --runtime-dir DIR      the daemon whose sockets are there
  --help, --version
)";

struct Options {
  ListenAddress listen{"127.0.0.1", 9836};
  std::vector<std::string> hosts;
  std::optional<std::string> runtime_dir;
  const char* print = nullptr;  // and be done
};

Result<Options> parse_options(int argc, char** argv) {
  const option known[] = {{"listen", required_argument, nullptr, 'l'},
                          {"allow-host", required_argument, nullptr, 'a'},
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
        return fail(Code::kInvalid, "an option is unknown or lacks its value, see --help");
    }
  }
  if (optind < argc) return fail(Code::kInvalid, "there are no arguments, see --help");
  return options;
}

WallTime wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

void answer(httplib::Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "text/plain; charset=utf-8");
}

// Every path is a GET without a body; whoever is slow or large is cut off.
void set_limits(httplib::Server& server) {
  // Not the library's SO_REUSEPORT: a second one would share the port, and so could a stranger.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.new_task_queue = [] { return new httplib::ThreadPool(4); };
  server.set_payload_max_length(1024);
  server.set_read_timeout(std::chrono::seconds(5));
  server.set_write_timeout(std::chrono::seconds(5));
  server.set_keep_alive_max_count(100);
  server.set_keep_alive_timeout(5);
}

void set_paths(httplib::Server& server, Source& source, const std::vector<std::string>& hosts) {
  server.set_pre_routing_handler(
      [hosts](const httplib::Request& request, httplib::Response& response) {
        using Handled = httplib::Server::HandlerResponse;
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Cache-Control", "no-store");
        if (!is_our_host(request.get_header_value("Host"), hosts)) {
          answer(response, 421, "this name is not served here: see --allow-host of gpurota-web\n");
          return Handled::Handled;
        }
        if (request.method != "GET" && request.method != "HEAD") {
          response.set_header("Allow", "GET, HEAD");
          answer(response, 405, "only GET\n");
          return Handled::Handled;
        }
        return Handled::Unhandled;
      });
  server.Get("/metrics", [&source](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics_text(source.get(), wall_now()),
                         "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    answer(response, 200, "ok\n");
  });
  server.Get("/readyz", [&source](const httplib::Request&, httplib::Response& response) {
    const std::string why = not_ready_because(source.get());
    answer(response, why.empty() ? 200 : 503, why.empty() ? "ready\n" : why + "\n");
  });
}

int serve(const Options& options) {
  Source source(client::locate(options.runtime_dir));
  httplib::Server server;
  set_limits(server);
  set_paths(server, source, options.hosts);
  const auto& [host, port] = options.listen;
  const int bound =
      port == 0 ? server.bind_to_any_port(host) : (server.bind_to_port(host, port) ? port : -1);
  if (bound < 0) {
    std::fprintf(stderr, "gpurota-web: cannot listen on %s port %d: is it in use?\n", host.c_str(),
                 port);
    return 1;
  }
  std::printf("gpurota-web listens on http://%s:%d\n",
              host.find(':') == host.npos ? host.c_str() : ("[" + host + "]").c_str(), bound);
  (void)std::fflush(stdout);
  return server.listen_after_bind() ? 0 : 1;
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
  } catch (const std::exception& error) {  // httplib throws where no thread can be had
    std::fprintf(stderr, "gpurota-web: %s\n", error.what());
    return 1;
  }
}
