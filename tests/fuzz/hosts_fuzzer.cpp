// A file of hosts, and a name after --host: an accepted name is one word that ssh reads only as a
// host.
#include "cli/args/host_args.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace gpurota;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_name(const std::string& host) {
  require(!host.empty() && host.size() <= 255);
  require(host.front() != '-' && host.find("@-") == host.npos);
  for (const char c : host) {
    const auto byte = static_cast<unsigned char>(c);
    require(byte > ' ' && byte < 127);
  }
  require(host.find_first_of("'\"\\$`;|&<>(){}*?!~#=,/") == host.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (cli::check_host(input)) check_name(input);
  const auto hosts = cli::parse_hosts(input, "hosts");
  if (!hosts) {
    const std::string& why = hosts.error().message;
    require(why.starts_with("hosts:") && why.find('\n') == why.npos);
    return 0;
  }
  for (const std::string& host : *hosts) check_name(host);
  const auto distinct = cli::distinct_hosts(*hosts);
  require(!distinct || distinct->size() <= cli::kMostHosts);
  return 0;
}
