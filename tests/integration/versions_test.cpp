// Libraries of other releases than the daemon's: the daemon serves them, or charges them by NVML,
// and continues.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include <unistd.h>

namespace gpurota::testing {
namespace {

// Sizes that the first release sent. A message may grow, but these sizes must always be accepted.
constexpr std::size_t kFirstHello = 584;
constexpr std::size_t kFirstGrow = 40;
constexpr std::size_t kFirstReturn = 24;
constexpr std::size_t kFirstQuery = 16;
constexpr std::size_t kFirstContexts = 16;
static_assert(offsetof(gpurota_msg_hello, lease) == 24 && offsetof(gpurota_msg_hello, held) == 72);
static_assert(offsetof(gpurota_msg_grow, returned_bytes) == 16);
static_assert(offsetof(gpurota_msg_return, bytes) == 16);
static_assert(offsetof(gpurota_msg_welcome, tenant) == 24);
static_assert(offsetof(gpurota_msg_grown, available_bytes) == 24);
static_assert(offsetof(gpurota_msg_info, available_bytes) == 24);
static_assert(offsetof(gpurota_page, grant) == 64 && offsetof(gpurota_page, use) == 64 + 16 * 64);

template <class Message>
std::vector<std::uint8_t> packet_of(const Message& message, int type, std::size_t size,
                                    std::uint32_t seq) {
  std::vector<std::uint8_t> packet(std::max(size, sizeof message), 0xee);
  std::memcpy(packet.data(), &message, sizeof message);
  packet.resize(size);
  const gpurota_msg_header header{static_cast<std::uint16_t>(type),
                                  static_cast<std::uint16_t>(size), seq};
  std::memcpy(packet.data(), &header, sizeof header);
  return packet;
}

class VersionsTest : public ::testing::Test {
 protected:
  VersionsTest() : lease(daemon.keep_slice(gib(8)).lease) {}

  // `tail`: bytes that a newer release has added. With `tail` 0, the sizes are those of the oldest
  // release.
  void speaks(std::uint32_t version, std::uint64_t features, std::size_t tail) {
    WireTenant tenant(daemon.tenant_socket());
    gpurota_msg_hello hello{};
    hello.magic = GPUROTA_WIRE_MAGIC;
    hello.version = version;
    hello.features = features;
    hello.lease = lease.lease_id.value;
    tenant.send_raw(packet_of(hello, GPUROTA_MSG_HELLO, kFirstHello + tail, 1));
    ASSERT_EQ(tenant.take_welcome(), GPUROTA_OK);
    EXPECT_EQ(tenant.page()->version, GPUROTA_PAGE_VERSION);
    gpurota_msg_grow grow{};
    grow.need_bytes = gib(1).count();
    tenant.send_raw(packet_of(grow, GPUROTA_MSG_GROW, kFirstGrow + tail, 2));
    EXPECT_EQ(tenant.take_grown()->granted_bytes, gib(1).count());
    gpurota_msg_query query{};
    tenant.send_raw(packet_of(query, GPUROTA_MSG_QUERY, kFirstQuery + tail, 3));
    EXPECT_EQ(tenant.take_info()->limit_bytes, gib(8).count());
    gpurota_msg_contexts contexts{};
    contexts.count = 1;
    tenant.send_raw(packet_of(contexts, GPUROTA_MSG_CONTEXTS, kFirstContexts + tail, 4));
    EXPECT_TRUE(tenant.take_info());
    gpurota_msg_return back{};
    back.bytes = gib(1).count();
    tenant.send_raw(packet_of(back, GPUROTA_MSG_RETURN, kFirstReturn + tail, 0));
    EXPECT_TRUE(eventually([&] { return daemon.granted().is_zero(); }));
  }

  RunningDaemon daemon;
  proto::Lease lease;
};

TEST_F(VersionsTest, LibraryOfTheFirstReleaseIsServed) { speaks(1, 0, 0); }

TEST_F(VersionsTest, ANewerLibraryIsServedAsAnOlderOne) {
  speaks(7, ~std::uint64_t{0}, 100);
  speaks(1, 0, GPUROTA_WIRE_MAX - kFirstHello);
}

TEST_F(VersionsTest, UnknownVersionIsRefusedAndTheDaemonContinues) {
  WireTenant none(daemon.tenant_socket());
  EXPECT_EQ(none.hello(lease.lease_id.value, "", {}, 0), GPUROTA_REFUSED_VERSION);
  WireTenant good(daemon.tenant_socket());
  EXPECT_EQ(good.hello(lease.lease_id.value), GPUROTA_OK);
}

TEST_F(VersionsTest, UnknownMessageEndsTheConnectionAndTheProcessIsChargedByNvml) {
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  tenant.send_raw(packet_of(gpurota_msg_query{}, 900, kFirstQuery, 2));
  EXPECT_TRUE(tenant.hung_up());
  daemon.probe.set_process(lease.gpus[0].uuid, ::getpid(), gib(3));
  EXPECT_TRUE(eventually([&] { return daemon.granted() == gib(3); }));
}

TEST_F(VersionsTest, MessageShorterThanTheFirstReleasesIsRefused) {
  WireTenant tenant(daemon.tenant_socket());
  gpurota_msg_hello hello{};
  hello.magic = GPUROTA_WIRE_MAGIC;
  hello.version = 1;
  hello.lease = lease.lease_id.value;
  tenant.send_raw(packet_of(hello, GPUROTA_MSG_HELLO, kFirstHello - 1, 1));
  EXPECT_TRUE(tenant.hung_up());
}

}  // namespace
}  // namespace gpurota::testing
