// Grants through the tenant socket.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

#include <unistd.h>

namespace gpurota::testing {
namespace {

class TenantTest : public ::testing::Test {
 protected:
  TenantTest() : lease(daemon.keep_slice(gib(8)).lease) {}
  GpuUuid gpu() const { return lease.gpus[0].uuid; }
  std::uint64_t id() const { return lease.lease_id.value; }

  RunningDaemon daemon;
  proto::Lease lease;
};

TEST_F(TenantTest, WelcomeHasThePageOfTheTenant) {
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(id()), GPUROTA_OK);
  EXPECT_EQ(tenant.page()->slots, 1u);
  EXPECT_EQ(tenant.page()->grant[0].limit_bytes, gib(8).count());
  EXPECT_EQ(tenant.page()->grant[0].uuid[0], 0);
}

TEST_F(TenantTest, GrowsUpToTheLimitAndNotBeyond) {
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(id()), GPUROTA_OK);
  EXPECT_EQ(tenant.grow(0, 1, mib(64).count())->granted_bytes, mib(64).count());
  EXPECT_EQ(tenant.grow(0, gib(7).count())->status, GPUROTA_OK);
  const auto refused = tenant.grow(0, gib(2).count());
  EXPECT_EQ(refused->status, GPUROTA_REFUSED_LIMIT);
  EXPECT_EQ(refused->available_bytes, (gib(1) - mib(64)).count());
  EXPECT_EQ(daemon.granted(), gib(7) + mib(64));
}

TEST(CrowdedLease, OneProcessTooManyIsRefusedAtOnceWithTheReason) {
  config::Config config = RunningDaemon::quick();
  config.max_tenants_per_lease = 1;
  RunningDaemon daemon(config);
  const proto::Lease lease = daemon.keep_slice(gib(8)).lease;
  const std::uint64_t id = lease.lease_id.value;
  auto first = std::make_unique<WireTenant>(daemon.tenant_socket());
  ASSERT_EQ(first->hello(id), GPUROTA_OK);
  WireTenant second(daemon.tenant_socket());
  EXPECT_EQ(second.hello(id), GPUROTA_REFUSED_BUSY);
  const auto events = daemon.call(proto::Events{});
  ASSERT_TRUE(events);
  const auto told = std::find_if(
      events->events.begin(), events->events.end(),
      [](const proto::Event& event) { return event.type == proto::EventType::kGrantDenied; });
  ASSERT_NE(told, events->events.end());
  EXPECT_EQ(told->lease_id, lease.lease_id);
  EXPECT_NE(told->message.find("max_tenants_per_lease"), std::string::npos) << told->message;
  first.reset();
  // The same process with a new connection.
  EXPECT_TRUE(eventually([&] {
    WireTenant again(daemon.tenant_socket());
    return again.hello(id) == GPUROTA_OK;
  })) << "it is in its own way";
}

TEST_F(TenantTest, HeadroomIsRecalledForAnotherTenant) {
  WireTenant first(daemon.tenant_socket()), second(daemon.tenant_socket());
  ASSERT_EQ(first.hello(id()), GPUROTA_OK);
  ASSERT_EQ(second.hello(id()), GPUROTA_OK);
  ASSERT_EQ(first.grow(0, gib(6).count())->status, GPUROTA_OK);
  std::thread answers([&] {
    const auto recall = first.next_recall();
    ASSERT_TRUE(recall);
    first.answer_recall(*recall, gib(5).count());
  });
  EXPECT_EQ(second.grow(0, gib(7).count())->status, GPUROTA_OK);
  answers.join();
  EXPECT_EQ(daemon.granted(), gib(8));
}

TEST_F(TenantTest, ATenantThatDoesNotAnswerIsCountedInFull) {
  WireTenant first(daemon.tenant_socket()), second(daemon.tenant_socket());
  ASSERT_EQ(first.hello(id()), GPUROTA_OK);
  ASSERT_EQ(second.hello(id()), GPUROTA_OK);
  ASSERT_EQ(first.grow(0, gib(6).count())->status, GPUROTA_OK);
  EXPECT_EQ(second.grow(0, gib(7).count())->status, GPUROTA_REFUSED_LIMIT);
}

TEST_F(TenantTest, AContextIsMeasuredBeforeItsCreationReturns) {
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(id()), GPUROTA_OK);
  ASSERT_EQ(tenant.grow_context(0)->status, GPUROTA_OK);
  daemon.probe.set_process(gpu(), ::getpid(), mib(518));
  const auto info = tenant.contexts(0, 1);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->available_bytes, (gib(8) - mib(518)).count());
  EXPECT_EQ(daemon.granted(), mib(518));
}

// A tenant reconnects, for example because its program has closed all descriptors. Until the next
// sample, only the tenant's report shows the context.
TEST_F(TenantTest, ATenantThatComesBackIsChargedForItsContextAtOnce) {
  auto first = std::make_unique<WireTenant>(daemon.tenant_socket());
  ASSERT_EQ(first->hello(id()), GPUROTA_OK);
  ASSERT_EQ(first->grow_context(0)->status, GPUROTA_OK);
  daemon.probe.set_process(gpu(), ::getpid(), mib(518));
  ASSERT_TRUE(first->contexts(0, 1));
  gpurota_held held{};
  std::memcpy(held.uuid, first->page()->grant[0].uuid, sizeof held.uuid);
  held.contexts = 1;
  first.reset();
  WireTenant again(daemon.tenant_socket());
  ASSERT_EQ(again.hello(id(), "", {held}), GPUROTA_OK);
  const auto refused = again.grow(0, gib(8).count());
  EXPECT_EQ(refused->status, GPUROTA_REFUSED_LIMIT);
  EXPECT_EQ(refused->available_bytes, (gib(8) - mib(518)).count());
}

TEST_F(TenantTest, QueryCountsHeadroomOfOthersAsAvailable) {
  WireTenant first(daemon.tenant_socket()), second(daemon.tenant_socket());
  ASSERT_EQ(first.hello(id()), GPUROTA_OK);
  ASSERT_EQ(second.hello(id()), GPUROTA_OK);
  ASSERT_EQ(first.grow(0, gib(6).count())->status, GPUROTA_OK);
  first.page()->use[0].headroom_bytes = gib(5).count();
  EXPECT_EQ(second.query(0)->available_bytes, gib(7).count());
  first.page()->use[0].headroom_bytes = UINT64_MAX;  // a hint, limited by what was granted
  EXPECT_EQ(second.query(0)->available_bytes, gib(8).count());
}

TEST_F(TenantTest, AChangedLimitReachesThePage) {
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(id()), GPUROTA_OK);
  ASSERT_TRUE(daemon.call(proto::Update{lease.lease_id, SizeSpec{gib(4), 0}, {}, {}}));
  EXPECT_TRUE(eventually([&] {
    return __atomic_load_n(&tenant.page()->grant[0].limit_bytes, __ATOMIC_RELAXED) ==
           gib(4).count();
  }));
  EXPECT_EQ(tenant.grow(0, gib(5).count())->status, GPUROTA_REFUSED_LIMIT);
}

TEST_F(TenantTest, MemoryOfAnEndedTenantIsAvailableOnceTheDriverHasFreedIt) {
  Child child({TENANT_PROGRAM, daemon.tenant_socket(), std::to_string(id()),
               std::to_string(gib(6).count())});
  ASSERT_EQ(child.read_line(), "granted");
  EXPECT_EQ(daemon.granted(), gib(6));
  daemon.probe.set_process(gpu(), child.pid(), gib(6));
  const pid_t pid = child.pid();
  child.kill();
  // The process is dead, but the driver has not freed its memory yet.
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(id()), GPUROTA_OK);
  EXPECT_EQ(tenant.query(0)->available_bytes, gib(2).count());
  std::thread driver([&] {
    const int seen = daemon.probe.samples_read();
    EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 3; }));
    daemon.probe.remove_process(pid);
  });
  // The request fits only when that memory is free again, and waits instead of being refused.
  EXPECT_EQ(tenant.grow(0, gib(7).count())->status, GPUROTA_OK);
  driver.join();
  EXPECT_EQ(daemon.granted(), gib(7));
}

TEST_F(TenantTest, AnotherUsersLeaseNeedsItsToken) {
  WireTenant stranger(daemon.tenant_socket());
  EXPECT_EQ(stranger.hello(id() + 1), GPUROTA_REFUSED_LEASE);
  WireTenant future(daemon.tenant_socket());
  EXPECT_EQ(future.hello(id(), "", {}, 0), GPUROTA_REFUSED_VERSION);
}

}  // namespace
}  // namespace gpurota::testing
