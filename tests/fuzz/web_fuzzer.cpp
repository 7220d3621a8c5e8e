// Any input from HTTP or a driver: the Host header of a request, an address to listen on, and names
// that become labels of metrics.
#include "base/text.h"
#include "web/host_check.h"
#include "web/metrics.h"

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

// Foreign text never adds a line or a series, and the result is always UTF-8.
void check_metrics(const std::string& foreign) {
  web::Snapshot snapshot;
  proto::Gpu& gpu = snapshot.status.gpus.emplace_back();
  gpu.uuid.value = foreign;
  gpu.name = foreign;
  gpu.parent = GpuUuid{foreign};
  snapshot.info.version = foreign;
  snapshot.info.driver_version = foreign;
  const std::string text = web::metrics_text(snapshot, WallTime());
  require(valid_utf8(text) == text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    require(end != text.npos);
    const std::string line = text.substr(at, end - at);
    require(line.rfind("# ", 0) == 0 || line.rfind("gpurota_", 0) == 0);
    at = end + 1;
  }
  snapshot.health.store_error = foreign;
  const std::string why = web::not_ready_because(snapshot);
  require(why.find('\n') == why.npos && valid_utf8(why) == why);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  // An accepted host name is exactly one of our names, an address or localhost, and does not merely
  // begin with one.
  if (web::is_our_host(input, {"gpu.example"})) {
    require(input.find_first_of(" /@\r\n\\") == input.npos);
  }
  const auto listen = web::parse_listen(input);
  if (listen) {
    require(listen->port >= 0 && listen->port <= 65535);
  } else {
    require(!listen.error().message.empty());
  }
  check_metrics(input);
  return 0;
}
