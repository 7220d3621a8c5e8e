#include "cli/site/doctor_kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using proto::Check;
using proto::CheckStatus;
using ::testing::HasSubstr;

containers::KubernetesNode a_node() {
  containers::KubernetesNode node;
  node.has_kubelet = node.kubelet_listens = true;
  node.plugins = {"gpurota-gpu.sock", "gpurota-memory.sock"};
  node.known = {{"gpurota.dev/gpu", 2}, {"gpurota.dev/memory", 160}, {"other/x", 1}};
  return node;
}

Check found(const containers::KubernetesNode& node, const std::string& name) {
  for (const Check& check : check_kubernetes(node, "/var/lib/kubelet")) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(DoctorKubernetes, WorkingNodeHasNoFindings) {
  for (const Check& check : check_kubernetes(a_node(), "/var/lib/kubelet")) {
    EXPECT_EQ(check.status, CheckStatus::kOk) << check.name << ": " << check.summary;
  }
  EXPECT_THAT(found(a_node(), "device plugin").summary,
              HasSubstr("gpurota.dev/gpu (2), gpurota.dev/memory (160)"));
}

TEST(DoctorKubernetes, MissingKubeletIsAnErrorThatNamesTheOption) {
  const auto checks = check_kubernetes({}, "/x");
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].status, CheckStatus::kError);
  EXPECT_THAT(*checks[0].remedy, HasSubstr("--kubelet-dir"));
}

TEST(DoctorKubernetes, UserWithoutAccessGetsNoFalseFindings) {
  containers::KubernetesNode node;
  node.has_kubelet = node.is_closed = true;
  const auto checks = check_kubernetes(node, "/var/lib/kubelet");
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_THAT(*checks[0].remedy, HasSubstr("sudo"));
}

TEST(DoctorKubernetes, KubeletThatIsDownIsAnError) {
  auto node = a_node();
  node.kubelet_listens = false;
  EXPECT_EQ(found(node, "kubelet").status, CheckStatus::kError);
}

TEST(DoctorKubernetes, WithoutPluginAndDriverNobodyGivesGpusToPods) {
  auto node = a_node();
  node.plugins = {"other.sock"};
  EXPECT_EQ(found(node, "device plugin").status, CheckStatus::kError);
  node.drivers = {"gpurota.dev-reg.sock"};
  node.known.clear();
  EXPECT_EQ(found(node, "device plugin").status, CheckStatus::kOk) << "the driver is enough";
}

TEST(DoctorKubernetes, AfterAChangeToTheDriverKubeletHasToBeRestarted) {
  auto node = a_node();
  node.plugins.clear();
  node.drivers = {"gpurota.dev-reg.sock"};
  EXPECT_EQ(found(node, "device plugin").status, CheckStatus::kWarning) << "kubelet lists them";
  node.known.clear();
  node.plugin_has_given = true;
  EXPECT_THAT(found(node, "device plugin").summary, HasSubstr("CreateContainerConfigError"));
  EXPECT_THAT(*found(node, "device plugin").remedy, HasSubstr("restart kubelet"));
  node.plugins = {"gpurota-gpu.sock"};
  node.known = {{"gpurota.dev/gpu", 2}};
  EXPECT_EQ(found(node, "device plugin").status, CheckStatus::kOk) << "it runs beside the driver";
}

TEST(DoctorKubernetes, PluginUnknownToKubeletIsAWarning) {
  auto node = a_node();
  node.known.clear();
  EXPECT_EQ(found(node, "device plugin").status, CheckStatus::kWarning);
}

TEST(DoctorKubernetes, ADriverNeedsCdi) {
  auto node = a_node();
  node.without_cdi = "/etc/containerd/config.toml";
  EXPECT_EQ(found(node, "claims").status, CheckStatus::kOk) << "nobody needs it";
  node.drivers = {"gpurota.dev-reg.sock"};
  EXPECT_EQ(found(node, "claims").status, CheckStatus::kWarning);
}

TEST(DoctorKubernetes, NvidiasOwnPluginsAreAnError) {
  auto node = a_node();
  node.plugins.emplace_back("nvidia-gpu.sock");
  EXPECT_EQ(found(node, "other plugins").status, CheckStatus::kError);
  node = a_node();
  node.drivers = {"gpu.nvidia.com-reg.sock"};
  EXPECT_THAT(found(node, "other plugins").summary, HasSubstr("gpu.nvidia.com-reg.sock"));
}

TEST(DoctorKubernetes, LeaseOfAnUnknownPodIsAWarning) {
  std::vector<proto::Lease> leases(2);
  leases[1].kind = proto::LeaseKind::kPod;
  leases[1].pod = proto::Pod{"ns", "pod", "main"};
  EXPECT_EQ(check_pods(leases, {}).status, CheckStatus::kOk);
  EXPECT_EQ(check_pods(leases, {}).summary, "1 container has a lease");
  leases[1].pod.reset();
  EXPECT_EQ(check_pods(leases, {}).status, CheckStatus::kWarning);
}

TEST(DoctorKubernetes, LeaseOfAClaimUnknownToKubeletIsReported) {
  std::vector<proto::Lease> leases(3);
  for (proto::Lease& lease : leases) {
    lease.kind = proto::LeaseKind::kPod;
    lease.pod = proto::Pod{"ns", "pod", "main"};
  }
  leases[0].allocation = "kube-1";
  leases[1].allocation = "claim-uid-1.0";
  leases[2].allocation = "claim-uid-2";
  leases[2].lease_id = LeaseId{7};
  containers::KubernetesNode node;
  EXPECT_EQ(check_pods(leases, node).summary, "3 containers have a lease") << "nobody knows";
  node.claims = R"({"entries":{"x":{"ClaimUID":"uid-1"}}})";
  const Check check = check_pods(leases, node);
  EXPECT_EQ(check.status, CheckStatus::kWarning);
  EXPECT_EQ(check.summary,
            "2 containers have a lease, and 1 lease is of a claim that kubelet does not know");
  EXPECT_THAT(*check.remedy, HasSubstr("gpurota release L7"));
}

}  // namespace
}  // namespace gpurota::cli
