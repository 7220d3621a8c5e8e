#include "proto/service.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

TEST(Service, DescribesItselfAndTheServiceInterface) {
  const ServiceInfo::Reply info = service_info();
  EXPECT_EQ(info.product, "gpurotad");
  EXPECT_FALSE(info.version.empty());
  for (const std::string& interface : info.interfaces) {
    const auto description = describe_interface(interface);
    ASSERT_TRUE(description.has_value()) << interface;
    EXPECT_NE(description->description.find("interface " + interface), std::string::npos);
  }
}

TEST(Service, UnknownInterfaceIsTheStandardError) {
  const auto description = describe_interface("com.example");
  ASSERT_FALSE(description.has_value());
  EXPECT_EQ(description.error().name, kInterfaceNotFound);
  EXPECT_EQ(description.error().subject, "com.example");
}

}  // namespace
}  // namespace gpurota::proto
