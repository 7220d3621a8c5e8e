#include "daemon/control/pods.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

TEST(Pods, AreNamedByNamespacePodAndContainer) {
  const proto::Pod pod{"default", "train-0", "main"};
  const auto text = pod_text(pod);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "default/train-0/main");
  const auto again = pod_of(*text);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->namespace_, "default");
  EXPECT_EQ(again->name, "train-0");
  EXPECT_EQ(again->container, "main");
}

TEST(Pods, PodsWithoutANameAreUnknown) { EXPECT_FALSE(pod_of("")); }

TEST(Pods, HaveOnlyNamesThatKubernetesAllows) {
  EXPECT_FALSE(pod_text({"a/b", "c", "d"}));
  EXPECT_FALSE(pod_text({"a", "c\n", "d"}));
  EXPECT_FALSE(pod_text({"a", "b", ""}));
}

}  // namespace
}  // namespace gpurota::daemon
