#include "kube/api/api_client.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

TEST(AnApiClient, NamesThatBecomePathsAreChecked) {
  for (const char* name : {"", "../x", "a/b", "A", ".hidden", "a?b"})
    EXPECT_FALSE(is_object_name(name)) << name;
  EXPECT_TRUE(is_object_name("gpu-node-1.example.org"));
}

}  // namespace
}  // namespace gpurota::kube
