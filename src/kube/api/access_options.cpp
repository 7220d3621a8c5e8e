#include "kube/api/access_options.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>

#include <unistd.h>

namespace gpurota::kube {
namespace {

// Beyond those that plugins have for options of their own.
enum { kNodeName = 1024, kApiServer, kTokenFile, kCaFile };

// A node is mostly called as its host is.
std::string usual_node_name() {
  if (const char* const said = std::getenv("NODE_NAME"); said && *said) return said;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::string node(name.data());
  for (char& c : node) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return node;
}

}  // namespace

std::vector<option> with_api_options(std::vector<option> own) {
  own.insert(own.end(), {{"node-name", required_argument, nullptr, kNodeName},
                         {"api-server", required_argument, nullptr, kApiServer},
                         {"token-file", required_argument, nullptr, kTokenFile},
                         {"ca-file", required_argument, nullptr, kCaFile},
                         {nullptr, 0, nullptr, 0}});
  return own;
}

std::string* find_text(ApiOptions& options, int option) {
  switch (option) {
    case kNodeName:
      return &options.node;
    case kApiServer:
      return &options.access.server;
    case kTokenFile:
      return &options.access.token_file;
    case kCaFile:
      return &options.access.ca_file;
    default:
      return nullptr;
  }
}

Result<void> complete(ApiOptions& options) {
  if (options.node.empty()) options.node = usual_node_name();
  if (!is_object_name(options.node)) {
    return fail(Code::kInvalid, fmt::format("'{}' is not the name of a node: give --node-name",
                                            display_text(options.node, 60)));
  }
  ApiAccess& access = options.access;
  if (access.server.empty()) {
    if (!access.token_file.empty() || !access.ca_file.empty()) {
      return fail(Code::kInvalid, "--token-file and --ca-file need --api-server");
    }
    GPUROTA_ASSIGN_OR_RETURN(access, access_in_cluster());
  }
  while (access.server.ends_with('/')) access.server.pop_back();
  return check_access(access);
}

}  // namespace gpurota::kube
