#include "proto/service.h"

namespace gpurota::proto {

std::string_view version() { return GPUROTA_VERSION; }

ServiceInfo::Reply service_info() {
  return {.vendor = "gpurota",
          .product = "gpurotad",
          .version = std::string(version()),
          .url = "",
          .interfaces = {std::string(kServiceInterface), std::string(kInterface)}};
}

tl::expected<InterfaceDescription::Reply, WireError> describe_interface(std::string_view name) {
  if (const std::string_view text = interface_text(name); !text.empty()) {
    return InterfaceDescription::Reply{std::string(text)};
  }
  return tl::unexpected(WireError{
      .name = std::string(kInterfaceNotFound), .message = {}, .subject = std::string(name)});
}

}  // namespace gpurota::proto
