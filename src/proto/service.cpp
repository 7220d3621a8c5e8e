#include "proto/service.h"

namespace gpurota::proto {
namespace {

// As in the varlink specification.
constexpr std::string_view kServiceText =
    R"(# The Varlink Service Interface is provided by every varlink service.
interface org.varlink.service

method GetInfo() -> (
  vendor: string,
  product: string,
  version: string,
  url: string,
  interfaces: []string
)

method GetInterfaceDescription(interface: string) -> (description: string)

error InterfaceNotFound (interface: string)
error MethodNotFound (method: string)
error MethodNotImplemented (method: string)
error InvalidParameter (parameter: string)
)";

}  // namespace

ServiceInfo::Reply service_info() {
  return {.vendor = "gpurota",
          .product = "gpurotad",
          .version = std::string(version()),
          .url = "",
          .interfaces = {std::string(kServiceInterface), std::string(kInterface)}};
}

tl::expected<InterfaceDescription::Reply, WireError> describe_interface(std::string_view name) {
  if (name == kInterface) return InterfaceDescription::Reply{std::string(interface_text())};
  if (name == kServiceInterface) return InterfaceDescription::Reply{std::string(kServiceText)};
  return tl::unexpected(WireError{
      .name = std::string(kInterfaceNotFound), .message = {}, .subject = std::string(name)});
}

}  // namespace gpurota::proto
