// What no client of ours does. Whatever it is, it costs that client and nobody else.
#include "ipc/packet.h"
#include "ipc/unix_socket.h"
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <sys/socket.h>

namespace gpurota::testing {
namespace {

bool serves(const RunningDaemon& daemon) { return daemon.call(proto::GetInfo{}).has_value(); }

TEST(Hostile, GarbageOnTheTenantSocketEndsThatConnection) {
  RunningDaemon daemon;
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    WireTenant tenant(daemon.tenant_socket());
    std::vector<std::uint8_t> packet(1 + random() % 900);
    for (auto& byte : packet) byte = static_cast<std::uint8_t>(random());
    tenant.send_raw(packet);
    EXPECT_TRUE(tenant.hung_up());
  }
  EXPECT_TRUE(serves(daemon));
}

TEST(Hostile, ASlotThatTheLeaseDoesNotHaveEndsTheConnection) {
  RunningDaemon daemon;
  const auto lease = daemon.keep_slice(gib(8)).lease;
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  EXPECT_FALSE(tenant.grow(5, 1));
  EXPECT_TRUE(tenant.hung_up());
  EXPECT_TRUE(serves(daemon));
}

TEST(Hostile, ReturningMoreThanWasGrantedGainsNothing) {
  RunningDaemon daemon;
  const auto lease = daemon.keep_slice(gib(8)).lease;
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  ASSERT_EQ(tenant.grow(0, gib(6).count())->status, GPUROTA_OK);
  tenant.give_back(0, UINT64_MAX);
  EXPECT_EQ(tenant.grow(0, gib(9).count())->status, GPUROTA_REFUSED_LIMIT);
  EXPECT_EQ(tenant.grow(0, gib(8).count())->status, GPUROTA_OK);
}

TEST(Hostile, ATenantThatFillsItsPageWithNonsenseIsShownBounded) {
  RunningDaemon daemon;
  const auto lease = daemon.keep_slice(gib(8)).lease;
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  std::memset(tenant.page(), 0xff, sizeof(gpurota_page));
  EXPECT_TRUE(serves(daemon));
  EXPECT_LE(daemon.granted(), gib(8));
}

TEST(Hostile, OneUserCannotTakeAllConnections) {
  config::Config config = RunningDaemon::quick();
  config.max_connections_per_user = 4;
  RunningDaemon daemon(config);
  std::vector<client::Connection> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(daemon.connect());
  EXPECT_TRUE(kept.back().call(proto::GetInfo{}));
  auto refused = daemon.connect();
  EXPECT_FALSE(refused.call(proto::GetInfo{}));
  EXPECT_TRUE(kept.front().call(proto::GetInfo{}));
}

TEST(Hostile, ACallWithoutEndClosesTheConnection) {
  RunningDaemon daemon;
  auto socket = ipc::connect_unix(daemon.control_socket(), SOCK_STREAM, std::chrono::seconds(5));
  ASSERT_TRUE(socket);
  const std::string endless(1 << 16, 'x');
  bool closed = false;
  for (int i = 0; i < 64 && !closed; ++i) {
    const auto sent = ipc::send_some(socket->get(), endless);
    closed = !sent || sent->state == ipc::IoState::kClosed;
  }
  EXPECT_TRUE(closed);
  EXPECT_TRUE(serves(daemon));
}

TEST(Hostile, AStormOfConnectionsThatSayNothingIsOutlived) {
  RunningDaemon daemon;
  for (int i = 0; i < 500; ++i) {
    WireTenant tenant(daemon.tenant_socket());
  }
  EXPECT_TRUE(serves(daemon));
}

}  // namespace
}  // namespace gpurota::testing
