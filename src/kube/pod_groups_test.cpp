#include "kube/pod_groups.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpurota::kube {
namespace {

namespace fs = std::filesystem;
using Uids = std::set<std::string>;

class PodGroups : public ::testing::Test {
 protected:
  void add(const std::string& group) {
    fs::create_directories(fs::path(dir_.path()) / "sys/fs/cgroup" / group);
  }
  testing::TempDir dir_;
};

TEST_F(PodGroups, AreFoundAsBothOfKubeletsDriversMakeThem) {
  add("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b4e_7.slice/"
      "cri-containerd-ab.scope");
  add("kubepods.slice/kubepods-pod2c_8.slice");
  add("kubepods/besteffort/pod3d-9/0123");
  add("kubepods/pod4e-1");
  add("user.slice/pod5f-2");
  EXPECT_EQ(read_pod_groups(dir_.path()).value(), (Uids{"1b4e-7", "2c-8", "3d-9", "4e-1"}));
}

TEST_F(PodGroups, AreFoundBelowACgroupRoot) {
  add("kubepods");
  add("kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1b4e_7.slice");
  add("site/kube/kubepods/besteffort/pod2c-8");
  add("system.slice/docker-" + std::string(64, 'a') + ".scope/kubepods/pod3d-9");
  EXPECT_EQ(read_pod_groups(dir_.path()).value(), (Uids{"1b4e-7", "2c-8"}));
}

TEST_F(PodGroups, AreFoundInAnyCgroupTree) {
  add("memory/kubepods/poda-1");
  add("systemd/kubepods/podb-2");
  add("cpu");
  EXPECT_EQ(read_pod_groups(dir_.path()).value(), (Uids{"a-1", "b-2"}));
}

TEST_F(PodGroups, NodeWithoutPodsHasNone) {
  add("kubepods.slice/kubepods-burstable.slice");
  EXPECT_EQ(read_pod_groups(dir_.path()).value(), Uids{});
}

TEST_F(PodGroups, AreUnknownWithoutKubeletsGroups) {
  EXPECT_EQ(read_pod_groups(dir_.path()).error().code, Code::kNotFound);
  add("user.slice");
  EXPECT_EQ(read_pod_groups(dir_.path()).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace gpurota::kube
