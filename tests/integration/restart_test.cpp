// One daemon ends and another starts: nothing is lost, nothing is granted twice.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include <unistd.h>

namespace gpurota::testing {
namespace {

gpurota_held held(const GpuUuid& gpu, Bytes granted) {
  gpurota_held entry{};
  const auto bytes = uuid_bytes(gpu);
  std::memcpy(entry.uuid, bytes->data(), bytes->size());
  entry.granted_bytes = granted.count();
  entry.contexts = 1;
  return entry;
}

class RestartTest : public ::testing::Test {
 protected:
  // Makes a run lease that survives its connections.
  void make_lease(RunningDaemon& daemon) {
    auto connection = daemon.connect();
    lease = daemon.acquire_slice(connection, gib(8)).lease;
    ASSERT_TRUE(connection.call(proto::Start{lease.lease_id, command.pid(), {}}));
  }
  Child command{{"sleep", "600"}};
  proto::Lease lease;
};

TEST_F(RestartTest, LeasesAndTenantMemoryComeBack) {
  RunningDaemon daemon;
  make_lease(daemon);
  {
    WireTenant tenant(daemon.tenant_socket());
    ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
    ASSERT_EQ(tenant.grow(0, gib(6).count())->status, GPUROTA_OK);
    daemon.stop();
    EXPECT_TRUE(tenant.hung_up());
  }
  daemon.start();
  ASSERT_EQ(daemon.call(proto::Status{})->leases.size(), 1u);
  // NVML shows the memory before the tenant has written anything to its new page.
  daemon.probe.set_process(lease.gpus[0].uuid, ::getpid(), gib(6));
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value, "", {held(lease.gpus[0].uuid, gib(6))}), GPUROTA_OK);
  const int seen = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 6; }));
  EXPECT_EQ(daemon.granted(), gib(6)) << "counted twice";
  EXPECT_EQ(tenant.grow(0, gib(3).count())->status, GPUROTA_REFUSED_LIMIT);
}

TEST_F(RestartTest, NothingIsGrantedBeforeOtherTenantsCouldReconnect) {
  config::Config config = RunningDaemon::quick();
  config.reconnect_grace = std::chrono::milliseconds(300);
  RunningDaemon daemon(config);
  make_lease(daemon);
  daemon.stop();
  daemon.start();
  WireTenant early(daemon.tenant_socket()), late(daemon.tenant_socket());
  ASSERT_EQ(early.hello(lease.lease_id.value), GPUROTA_OK);
  std::thread comes_back([&] {
    ASSERT_EQ(late.hello(lease.lease_id.value, "", {held(lease.gpus[0].uuid, gib(6))}), GPUROTA_OK);
  });
  EXPECT_EQ(early.grow(0, gib(4).count())->status, GPUROTA_REFUSED_LIMIT);
  comes_back.join();
}

TEST_F(RestartTest, AfterAnOrderlyEndNobodyWaitsOnceAllHaveReconnected) {
  config::Config config = RunningDaemon::quick();
  config.reconnect_grace = std::chrono::minutes(10);
  RunningDaemon daemon(config);
  make_lease(daemon);
  {
    WireTenant tenant(daemon.tenant_socket());
    ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
    ASSERT_EQ(tenant.grow(0, gib(6).count())->status, GPUROTA_OK);
    daemon.finish();
  }
  daemon.start();
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value, "", {held(lease.gpus[0].uuid, gib(6))}), GPUROTA_OK);
  EXPECT_EQ(tenant.grow(0, gib(1).count())->status, GPUROTA_OK);
  EXPECT_EQ(tenant.grow(0, gib(3).count())->status, GPUROTA_REFUSED_LIMIT);
}

TEST_F(RestartTest, ContextSizeSurvivesARestart) {
  RunningDaemon daemon;
  make_lease(daemon);
  const GpuUuid gpu = lease.gpus[0].uuid;
  {
    WireTenant tenant(daemon.tenant_socket());
    ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
    ASSERT_EQ(tenant.grow_context(0)->status, GPUROTA_OK);
    daemon.probe.set_process(gpu, ::getpid(), mib(300));
    ASSERT_TRUE(tenant.contexts(0, 1));
    EXPECT_EQ(daemon.granted(), mib(300));
    daemon.stop();
  }
  daemon.probe.remove_process(::getpid());
  daemon.start();
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  ASSERT_EQ(tenant.grow_context(0)->status, GPUROTA_OK);
  EXPECT_EQ(daemon.granted(), mib(300)) << "not what one may take at most";
}

TEST_F(RestartTest, LeaseOfACommandThatEndedMeanwhileIsReleased) {
  RunningDaemon daemon;
  make_lease(daemon);
  daemon.stop();
  command.kill();
  daemon.start();
  EXPECT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
  EXPECT_TRUE(daemon.store.leases().empty());
}

}  // namespace
}  // namespace gpurota::testing
