#include "daemon/watch/pod_finder.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

const std::string kRoot = testing::FakeControlGroups::kRoot;
const std::string kNode = kRoot + "/docker/" + std::string(64, 'a');
constexpr const char* kBySystemd =
    "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
    "kubelet-kubepods-burstable-pod1b_2.slice";

class PodFinderTest : public ::testing::Test {
 protected:
  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  testing::FakeControlGroups& groups = processes.cgroups();
  PodFinder finder{loop, groups};
};

TEST_F(PodFinderTest, TheUsualPlacesNeedNoSearch) {
  groups.add(kRoot + "/kubepods/burstable/pod1b-2");
  EXPECT_EQ(finder.find("1b-2", ""), kRoot + "/kubepods/burstable/pod1b-2");
  EXPECT_EQ(groups.searches, 0);
  EXPECT_EQ(finder.find("", ""), "");
  EXPECT_EQ(groups.searches, 0);
}

TEST_F(PodFinderTest, ACgroupRootIsSearchedForOnceAndThenKnown) {
  groups.add(kRoot + kBySystemd);
  EXPECT_EQ(finder.find("1b-2", ""), kRoot + kBySystemd);
  EXPECT_EQ(finder.find("1b-2", ""), kRoot + kBySystemd);
  EXPECT_EQ(groups.searches, 1);
}

TEST_F(PodFinderTest, NestedPathsAndBothCgroupDriversAreFound) {
  groups.add(kRoot + "/site/kube/kubepods/besteffort/pod1b-2");
  groups.add(kRoot + "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod3c_4.slice");
  EXPECT_EQ(finder.find("1b-2", ""), kRoot + "/site/kube/kubepods/besteffort/pod1b-2");
  EXPECT_EQ(finder.find("3c-4", ""),
            kRoot + "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod3c_4.slice");
}

TEST_F(PodFinderTest, APodThatIsNowhereIsSearchedForOnceASecond) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(finder.find("1b-2", ""), "");
  EXPECT_EQ(groups.searches, 1);
  groups.add(kRoot + kBySystemd);
  EXPECT_EQ(finder.find("1b-2", ""), "");
  loop.advance(PodFinder::kSearchAgain);
  EXPECT_EQ(finder.find("1b-2", ""), kRoot + kBySystemd);
}

TEST_F(PodFinderTest, AKubeletInAContainerIsSearchedForOnlyThere) {
  groups.add(kNode + kBySystemd);
  EXPECT_EQ(finder.find("1b-2", ""), "");
  EXPECT_EQ(finder.find("1b-2", kNode), kNode + kBySystemd);
  groups.drop(kNode + kBySystemd);
  groups.add(kRoot + "/kubepods/pod1b-2");
  EXPECT_EQ(finder.find("1b-2", kNode), kRoot + "/kubepods/pod1b-2") << "beside the container";
}

TEST_F(PodFinderTest, WhatAPodOrAContainerOrAUserMakesIsNotKubelets) {
  const std::string container = "/" + std::string(64, 'b');
  groups.add(kRoot + "/kubepods/burstable/pod9-9" + container + "/kubepods/pod1b-2");
  groups.add(kRoot + "/kubepods/pod9-9/pod1b-2");
  groups.add(kRoot + "/k8s.io" + container + "/kubepods/pod1b-2");
  groups.add(kRoot + "/user.slice/kubepods/pod1b-2");
  groups.set_made_by_user(kRoot + "/user.slice/kubepods");
  groups.add(kRoot + "/gpurota-L1-7/kubepods/pod1b-2");
  EXPECT_EQ(finder.find("1b-2", ""), "");
  groups.add(kNode + "/kubepods/pod9-9" + container + "/kubepods/pod1b-2");
  EXPECT_EQ(finder.find("1b-2", kNode), "");
}

}  // namespace
}  // namespace gpurota::daemon
