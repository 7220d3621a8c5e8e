// Leases of pods: requested by root's plugin, held without a connection, identified by their token.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

proto::AcquireForPod ask_for(const std::string& allocation, const std::string& token,
                             std::optional<SizeSpec> memory = SizeSpec{gib(4), 0}) {
  proto::AcquireForPod call;
  call.allocation = allocation;
  call.token = token;
  call.request.memory = memory;
  return call;
}

std::vector<proto::Lease> leases_of(const RunningDaemon& daemon) {
  return daemon.call(proto::Status{}).value().leases;
}

TEST(Pods, PodLeaseNeedsNoConnection) {
  RunningDaemon daemon;
  const auto made = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->lease.kind, proto::LeaseKind::kPod);
  EXPECT_EQ(made->lease.allocation, "kube-1");
  EXPECT_FALSE(made->lease.pod);
  EXPECT_EQ(leases_of(daemon).size(), 1u) << "the connection is closed";
}

TEST(Pods, SameAllocationGetsTheSameLeaseAlsoFromTheNextDaemon) {
  RunningDaemon daemon;
  const auto first = daemon.call(ask_for("kube-1", kToken));
  const auto second = daemon.call(ask_for("kube-1", kToken));
  daemon.stop();
  daemon.start();
  const auto third = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->lease.lease_id, second->lease.lease_id);
  EXPECT_EQ(first->lease.lease_id, third->lease.lease_id);
  EXPECT_EQ(leases_of(daemon).size(), 1u);
}

TEST(Pods, LeaseGetsThePodsNameByAnUpdate) {
  RunningDaemon daemon;
  const auto made = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(made);
  proto::Update call;
  call.lease_id = made->lease.lease_id;
  call.pod = proto::Pod{"default", "train-0", "main"};
  ASSERT_TRUE(daemon.call(call));
  daemon.stop();
  daemon.start();
  const auto leases = leases_of(daemon);
  ASSERT_EQ(leases.size(), 1u);
  EXPECT_EQ(leases.front().pod, call.pod);
  EXPECT_EQ(leases.front().as_name, "default/train-0/main");
  call.pod->name = "Not/A/Name";
  const auto refused = daemon.call(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  proto::Release release;
  release.lease_id = made->lease.lease_id;
  ASSERT_TRUE(daemon.call(release));
  call.pod->name = "train-1";
  EXPECT_FALSE(daemon.call(call));
  EXPECT_TRUE(eventually([&] { return leases_of(daemon).empty(); }))
      << "a lease that is over is not made again to be named";
}

TEST(Pods, PodIsIdentifiedByItsTokenAlone) {
  RunningDaemon daemon;
  const auto made = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(made);
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(0, kToken), GPUROTA_OK);
  const std::uint64_t number = made->lease.lease_id.value;
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(number, kToken), GPUROTA_OK);
  // The uid of the lease is not enough, because root in one pod is root in all pods.
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(number), GPUROTA_REFUSED_LEASE);
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(0), GPUROTA_REFUSED_LEASE);
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(0, std::string(32, '0')),
            GPUROTA_REFUSED_LEASE);
}

TEST(Pods, TokenOfALeaseThatIsNotAPodsIsRefused) {
  RunningDaemon daemon;
  const auto run = daemon.keep_slice(gib(4));
  std::string token;
  for (const proto::Variable& variable : run.environment) {
    if (variable.name == "GPUROTA_TOKEN") token = variable.value;
  }
  ASSERT_FALSE(token.empty());
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(0, token), GPUROTA_REFUSED_LEASE);
}

TEST(Pods, PodWithAWholeGpuJoinsByItsToken) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.call(ask_for("kube-1", kToken, std::nullopt)));
  const auto joined = WireTenant(daemon.tenant_socket()).ask_for_lease(0, kToken);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->status, static_cast<std::uint32_t>(GPUROTA_UNMANAGED));
  const auto stranger = WireTenant(daemon.tenant_socket()).ask_for_lease(0, std::string(32, '0'));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->status, static_cast<std::uint32_t>(GPUROTA_REFUSED_LEASE));
}

TEST(Pods, PodDoesNotWaitForAUsedGpu) {
  RunningDaemon daemon;
  const auto run = daemon.keep_slice(gib(22));
  const auto refused = daemon.call(ask_for("kube-1", kToken));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNoGpu);
  EXPECT_EQ(leases_of(daemon).size(), 1u);
}

TEST(Pods, UserLimitsDoNotApplyToPods) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(1);
  config.max_leases_per_user = 1;
  RunningDaemon daemon(config);
  EXPECT_TRUE(daemon.call(ask_for("kube-1", kToken)));
  EXPECT_TRUE(daemon.call(ask_for("kube-2", std::string(32, 'a'))));
}

TEST(Pods, InvalidRequestsAreRefused) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.call(ask_for("kube-1", kToken)));
  const auto code_of = [&](const proto::AcquireForPod& call) {
    const auto answer = daemon.call(call);
    return answer ? std::optional<Code>() : answer.error().code;
  };
  EXPECT_EQ(code_of(ask_for("kube-2", "short")), Code::kInvalid);
  EXPECT_EQ(code_of(ask_for("kube-2", std::string(32, 'G'))), Code::kInvalid);
  EXPECT_EQ(code_of(ask_for("kube-2", kToken)), Code::kInvalid) << "another's token";
  EXPECT_EQ(code_of(ask_for("kube-1", std::string(32, 'a'))), Code::kDenied);
  EXPECT_EQ(code_of(ask_for("", std::string(32, 'a'))), Code::kInvalid);
  auto kind = ask_for("kube-2", std::string(32, 'a'));
  kind.request.kind = "run";
  EXPECT_EQ(code_of(kind), Code::kInvalid);
  auto time = ask_for("kube-2", std::string(32, 'a'));
  time.request.seconds = 60;
  EXPECT_EQ(code_of(time), Code::kInvalid);
  auto uid = ask_for("kube-2", std::string(32, 'a'));
  for (const char* text : {"../1", "a/b", "a b"}) {
    uid.pod_uid = text;
    EXPECT_EQ(code_of(uid), Code::kInvalid) << text;
  }
  EXPECT_EQ(leases_of(daemon).size(), 1u);
}

TEST(Pods, ReleasedPodHasNoLease) {
  RunningDaemon daemon;
  const auto made = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(made);
  proto::Release release;
  release.lease_id = made->lease.lease_id;
  ASSERT_TRUE(daemon.call(release));
  EXPECT_TRUE(eventually([&] { return leases_of(daemon).empty(); }));
  EXPECT_EQ(WireTenant(daemon.tenant_socket()).hello(0, kToken), GPUROTA_REFUSED_LEASE);
  const auto again = daemon.call(ask_for("kube-1", kToken));
  ASSERT_TRUE(again);
  EXPECT_NE(again->lease.lease_id, made->lease.lease_id);
}

}  // namespace
}  // namespace gpurota::testing
