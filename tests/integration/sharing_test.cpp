// Memory that one tenant shares and another opens through the daemon (abi/wire_share.h).
#include "running_daemon.h"
#include "swap_client.h"

#include <gtest/gtest.h>

#include <deque>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

constexpr std::uint64_t kKey = 0x5eed;

class SharingTest : public ::testing::Test {
 protected:
  // The lease is held until the test ends: the end of the lease would kill the test's own process.
  std::uint64_t make_lease() {
    proto::Acquire call;
    call.request.swap = true;
    connections.push_back(daemon.connect());
    const auto reply = connections.back().call(call);
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->lease.lease_id.value : 0;
  }
  static gpurota_shared_name name(std::uint64_t key = kKey) { return {{key, 0}, 0x1000, 1}; }
  bool join(SwapClient& client, std::uint64_t key = 0) {
    client.set_key(key);
    return client.join(make_lease());
  }

  // Asks again while the daemon answers that it is busy, as the library does.
  static SwapClient::Opened open(SwapClient& opener, const gpurota_shared_name& name) {
    SwapClient::Opened opened;
    EXPECT_TRUE(eventually([&] {
      auto answer = opener.open(name);
      if (answer) opened = std::move(*answer);
      return answer && opened.status != GPUROTA_REFUSED_BUSY;
    }));
    return opened;
  }

  std::deque<client::Connection> connections;  // outlive the daemon
  RunningDaemon daemon;
};

TEST_F(SharingTest, OpenerOfMemoryIsConnectedWithItsOwner) {
  SwapClient owner(daemon.tenant_socket()), opener(daemon.tenant_socket());
  ASSERT_TRUE(join(owner, kKey));
  ASSERT_TRUE(join(opener));
  EXPECT_NE(opener.features() & GPUROTA_FEATURE_OPEN, 0u);
  for (int i = 0; i < 100; ++i) {
    const auto opened = open(opener, name());
    ASSERT_TRUE(opened.socket);
    std::uint64_t said = 0;
    EXPECT_TRUE(eventually([&] {
      return ::recv(opened.socket.get(), &said, sizeof said, MSG_DONTWAIT) == sizeof said;
    }));
    EXPECT_EQ(said, name().address);
  }
}

TEST_F(SharingTest, OpenerMustRetryWhileTheOwnerIsNotConnected) {
  SwapClient owner(daemon.tenant_socket()), opener(daemon.tenant_socket());
  ASSERT_TRUE(join(opener));
  EXPECT_EQ(opener.open(name())->status, GPUROTA_REFUSED_BUSY) << "the daemon is young";
  ASSERT_TRUE(join(owner, kKey));
  EXPECT_TRUE(open(opener, name()).socket);
  owner.disconnect();
  EXPECT_TRUE(eventually([&] { return opener.open(name())->status == GPUROTA_REFUSED_BUSY; }))
      << "its process lives";
}

// Each answer may carry a descriptor, and unread ones count against the daemon's limit.
TEST_F(SharingTest, ATenantThatDoesNotReadAnswersIsDisconnected) {
  SwapClient owner(daemon.tenant_socket()), opener(daemon.tenant_socket());
  ASSERT_TRUE(join(owner, kKey));
  ASSERT_TRUE(join(opener));
  opener.ask_to_open(name());
  opener.ask_to_open(name());
  EXPECT_TRUE(opener.hung_up());
}

// The sender's descriptor may be a file on a FUSE mount, which would block a close forever.
TEST_F(SharingTest, DescriptorsSentByATenantAreNotReceived) {
  SwapClient tenant(daemon.tenant_socket());
  ASSERT_TRUE(join(tenant, kKey));
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  tenant.send_status(0, write_end.get());
  write_end.reset();
  EXPECT_EQ(tenant.grow(mib(1)), GPUROTA_OK);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "nobody has the other end";
}

}  // namespace
}  // namespace gpurota::testing
