#include "kube/api/access_options.h"

#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cstdlib>

#include <unistd.h>

namespace gpurota::kube {
namespace {

// By default a node has the name of its host.
std::string usual_node_name() {
  if (const char* const said = std::getenv("NODE_NAME"); said && *said) return said;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::string node(name.data());
  for (char& c : node) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return node;
}

}  // namespace

std::vector<Option> api_rows(ApiOptions& options) {
  return {{'\0', "--node-name", &options.node, "NAME",
           "what Kubernetes calls this node ($NODE_NAME; else the host's name)"},
          {'\0', "--api-server", &options.access.server, "URL",
           "where the API server is (that of the cluster whose pod this is)"},
          {'\0', "--token-file", &options.access.token_file, "FILE",
           "bearer token for the API server, read again before each call (that of the\n"
           "pod)"},
          {'\0', "--ca-file", &options.access.ca_file, "FILE",
           "CA certificates for the API server (that of the pod)"}};
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
