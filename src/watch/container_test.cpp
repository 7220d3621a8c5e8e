#include "watch/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::watch {
namespace {

using namespace std::string_literals;
using ::testing::Contains;
using ::testing::ElementsAre;

const std::string kId(64, 'a');
const std::string kOther(64, 'b');
const std::string kPod = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

TEST(FindContainer, KnowsTheGroupsOfEachEngineWithEitherDriver) {
  const auto docker = find_container("/system.slice/docker-" + kId + ".scope");
  EXPECT_EQ(docker, (Container{"docker", kId, "", "/system.slice/docker-" + kId + ".scope"}));
  EXPECT_EQ(find_container("/docker/" + kId + "/init"),
            (Container{"docker", kId, "", "/docker/" + kId}));
  EXPECT_EQ(find_container("/machine.slice/libpod-" + kId + ".scope/container"),
            (Container{"podman", kId, "", "/machine.slice/libpod-" + kId + ".scope"}));
  EXPECT_EQ(find_container("/libpod_parent/libpod-" + kId)->engine, "podman");
  EXPECT_EQ(find_container("/user.slice/x.service/libpod-payload-" + kId)->id, kId);
  EXPECT_EQ(find_container("/system.slice/nerdctl-" + kId + ".scope")->engine, "nerdctl");
  EXPECT_EQ(find_container("/lxc.payload.web/system.slice/a.service"),
            (Container{"lxc", "web", "", "/lxc.payload.web"}));
}

TEST(FindContainer, AnIdIsAContainersWhereverItsGroupIs) {
  for (const std::string parent : {"/gpu-containers", "/default", "", "/user.slice/x.scope"}) {
    const std::string group = parent + "/" + kId;
    EXPECT_EQ(find_container(group + "/init"), (Container{"containerd", kId, "", group})) << parent;
  }
}

TEST(FindContainer, KnowsThePodOfAContainer) {
  std::string slice = kPod;
  std::replace(slice.begin(), slice.end(), '-', '_');
  const std::string pod =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + slice + ".slice";
  EXPECT_EQ(find_container(pod), (Container{"kubernetes", "", kPod, pod}));
  const std::string group = pod + "/cri-containerd-" + kId + ".scope";
  EXPECT_EQ(find_container(group), (Container{"containerd", kId, kPod, group}));
  const std::string plain = "/kubepods/besteffort/pod" + kPod + "/" + kId;
  EXPECT_EQ(find_container(plain), (Container{"kubernetes", kId, kPod, plain}));
}

TEST(FindContainer, KnowsThePodBelowACgroupRoot) {
  const std::string pod =
      "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
      "kubelet-kubepods-besteffort-pod1b_2.slice";
  EXPECT_EQ(find_container(pod), (Container{"kubernetes", "", "1b-2", pod}));
  const std::string group = pod + "/cri-containerd-" + kId + ".scope";
  EXPECT_EQ(find_container("/docker/" + kOther + group),
            (Container{"containerd", kId, "1b-2", "/docker/" + kOther + group}));
  const std::string plain = "/site/kube/kubepods/pod1b-2/" + kId;
  EXPECT_EQ(find_container(plain), (Container{"kubernetes", kId, "1b-2", plain}));
}

TEST(FindContainer, TakesTheInnermost) {
  const std::string inner = "/docker/" + kId + "/docker/" + kOther;
  EXPECT_EQ(find_container(inner), (Container{"docker", kOther, "", inner}));
}

TEST(FindContainer, TakesTheInnermostThatCounts) {
  const std::string outer = "/docker/" + kId, inner = outer + "/libpod-" + kOther;
  const auto counts = [&](const std::string& group) { return group != inner; };
  EXPECT_EQ(find_container(inner + "/x", counts), (Container{"docker", kId, "", outer}));
  EXPECT_FALSE(find_container(inner, [](const std::string&) { return false; }));
}

TEST(FindContainer, FindsNoneWhereThereIsNone) {
  for (const char* group :
       {"", "/", "/user.slice/user-1000.slice", "/docker", "/docker/short",
        "/system.slice/docker.service", "/kubepods", "/poda/b", "/default/web"}) {
    EXPECT_FALSE(find_container(group)) << group;
  }
  // A user who may make control groups may give them any name.
  EXPECT_FALSE(find_container("/lxc.payload.\xff"));
  EXPECT_FALSE(find_container("/kubepods/pod\x1b[31m"));
  // podman's monitor is not in the container.
  EXPECT_FALSE(find_container("/machine.slice/libpod-conmon-" + kId + ".scope"));
}

TEST(PodGroups, AreThoseInWhichFindContainerFindsThePod) {
  for (const std::string kubelets :
       {"/kubepods.slice", "/kubepods", "/kubelet.slice/kubelet-kubepods.slice", "/a/b/kubepods",
        "/a.slice/a-b.slice/a-b-kubepods.slice"}) {
    EXPECT_TRUE(is_kubelets_name(kubelets.substr(kubelets.rfind('/') + 1))) << kubelets;
    const std::vector<std::string> groups = pod_groups(kubelets, kPod);
    EXPECT_EQ(groups.size(), 3U);
    for (const std::string& group : groups) {
      const auto found = find_container(group);
      ASSERT_TRUE(found) << group;
      EXPECT_EQ(found->pod, kPod);
      EXPECT_EQ(found->group, group);
    }
  }
}

TEST(PodGroups, HaveTheNamesOfKubeletsCgroupDrivers) {
  EXPECT_THAT(pod_groups("/kubepods", "1b-2"),
              ElementsAre("/kubepods/pod1b-2", "/kubepods/burstable/pod1b-2",
                          "/kubepods/besteffort/pod1b-2"));
  EXPECT_THAT(pod_groups("/kubelet.slice/kubelet-kubepods.slice", "1b-2"),
              Contains("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                       "kubelet-kubepods-burstable-pod1b_2.slice"));
}

TEST(PodGroups, TextThatIsNoUidHasNone) {
  for (const char* text : {"", "a/b", "..", "a b", "\xff"}) {
    EXPECT_TRUE(pod_groups("/kubepods", text).empty());
    EXPECT_FALSE(is_pod_uid(text));
  }
}

TEST(ContainerOfKubelet, IsTheOneAroundTheGroupOfAllPods) {
  const std::string pods = "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1b.slice";
  const std::string node = "/docker/" + kId;
  EXPECT_EQ(container_of_kubelet(node + pods + "/cri-containerd-" + kOther + ".scope"), node);
  EXPECT_EQ(container_of_kubelet(node + "/kubepods/pod1b/" + kOther), node);
  EXPECT_EQ(container_of_kubelet(node + "/system.slice/gpurota-dra.service"), node);
  EXPECT_EQ(container_of_kubelet(pods + "/" + kId), "");
  EXPECT_EQ(container_of_kubelet("/system.slice/gpurota-dra.service"), "");
  // A node whose container is itself in a pod of another kubelet.
  const std::string outer = "/kubepods/pod2c/" + kOther;
  EXPECT_EQ(container_of_kubelet(outer + pods + "/" + kId), outer);
}

TEST(ContainerName, IsAlsoOneOfKubeletsGroups) {
  for (const std::string& name : {kId, "docker-" + kId + ".scope", "lxc.payload.web"s, "kubepods"s,
                                  "kubelet-kubepods-pod1b.slice"s}) {
    EXPECT_TRUE(is_container_name(name)) << name;
  }
  for (const char* name : {"docker", "podruntime.slice", "kubelet.slice", "a-kubepods"}) {
    EXPECT_FALSE(is_container_name(name)) << name;
  }
}

}  // namespace
}  // namespace gpurota::watch
