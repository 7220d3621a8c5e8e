// The description of gpurota for varlink clients: org.varlink.service.
#pragma once

#include "proto/error.h"
#include "proto/methods.h"

#include <tl/expected.hpp>

#include <string_view>

namespace gpurota::proto {

// The version in CMakeLists.txt at build time: "1.2.3".
std::string_view version();
// The Varlink file of an interface at build time; empty for any other interface.
std::string_view interface_text(std::string_view interface);

ServiceInfo::Reply service_info();
// InterfaceNotFound for an interface that is neither dev.gpurota nor org.varlink.service.
tl::expected<InterfaceDescription::Reply, WireError> describe_interface(std::string_view name);

}  // namespace gpurota::proto
