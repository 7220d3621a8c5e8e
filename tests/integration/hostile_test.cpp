// Messages that no client of ours sends. Each may harm only the client that sends it.
#include "ipc/packet.h"
#include "ipc/unix_socket.h"
#include "running_daemon.h"
#include "tests/driver/pass_descriptor.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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

// Some types are valid only on the other socket, or only from the daemon.
TEST(Hostile, MessageOfAnyTypeOnTheCallSocketLeavesTheDaemonRunning) {
  RunningDaemon daemon;
  const auto lease = daemon.keep_slice(gib(8)).lease;
  for (std::uint16_t type = 0; type <= GPUROTA_MSG_HOLD_END + 1; ++type) {
    WireTenant tenant(daemon.tenant_socket());
    ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
    std::vector<std::uint8_t> packet(GPUROTA_WIRE_MAX);
    gpurota_msg_header header{type, GPUROTA_WIRE_MAX, 1};
    std::memcpy(packet.data(), &header, sizeof header);
    tenant.send_raw(packet);
    EXPECT_TRUE(type != GPUROTA_MSG_MARKED || tenant.hung_up());
    ASSERT_TRUE(serves(daemon)) << "message type " << type;
  }
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

TEST(Hostile, TenantWithAGarbagePageIsChargedAtMostItsLimit) {
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

TEST(Hostile, EndlessCallClosesTheConnection) {
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

TEST(Hostile, ManySilentConnectionsAreSurvived) {
  RunningDaemon daemon;
  for (int i = 0; i < 500; ++i) {
    WireTenant tenant(daemon.tenant_socket());
  }
  EXPECT_TRUE(serves(daemon));
}

// A raw connection to the control socket.
class RawClient {
 public:
  explicit RawClient(const RunningDaemon& daemon) {
    auto socket = ipc::connect_unix(daemon.control_socket(), SOCK_STREAM, std::chrono::seconds(5));
    if (socket) fd_ = std::move(*socket);
  }
  // False: the daemon has closed the connection.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Sends without reading, until no more can be sent within a moment. Returns the number of bytes
  // sent.
  std::size_t flood(std::string_view bytes) const {
    std::size_t total = 0;
    std::string_view left = bytes;
    while (total < 4000000) {
      const ssize_t sent = ::send(fd_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        total += static_cast<std::size_t>(sent);
        left.remove_prefix(static_cast<std::size_t>(sent));
        if (left.empty()) left = bytes;
        continue;
      }
      pollfd writable{fd_.get(), POLLOUT, 0};
      if (::poll(&writable, 1, 500) <= 0 || (writable.revents & (POLLHUP | POLLERR))) break;
    }
    return total;
  }
  // One answer, or what arrived before the daemon closed the connection.
  std::string answer() const {
    std::string text;
    char c = 0;
    while (::recv(fd_.get(), &c, 1, 0) == 1 && c != '\0') text += c;
    return text;
  }
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

TEST(Hostile, ClientThatReadsNoAnswersIsNotReadAndOthersAreServed) {
  RunningDaemon daemon;
  const RawClient client(daemon);
  const std::string call = std::string("{\"method\":\"dev.gpurota.GetInfo\"}") + '\0';
  const std::size_t sent = client.flood(call);
  EXPECT_LT(sent, 2000000u) << "it took everything";
  EXPECT_TRUE(serves(daemon));
  // The client has lost nothing: once it reads, every complete call is answered.
  for (std::size_t i = 0; i < sent / call.size(); ++i) {
    ASSERT_EQ(client.answer().rfind("{\"parameters\":", 0), 0u) << i;
  }
}

TEST(Hostile, HalfMessagesOfManyConnectionsDelayNobody) {
  RunningDaemon daemon;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(daemon);
    EXPECT_TRUE(clients.back().send("{\"method\":\"dev.gpurota.Stat"));
  }
  EXPECT_TRUE(serves(daemon));
  EXPECT_TRUE(clients.front().send(std::string("us\"}") + '\0'));
  EXPECT_EQ(clients.front().answer().rfind("{\"parameters\":", 0), 0u);
}

TEST(Hostile, MalformedCallGetsAnErrorAndHasNoEffect) {
  RunningDaemon daemon;
  for (const std::string& text :
       {std::string("[]"), std::string("{}"), std::string("{\"method\":7}"),
        std::string("\xff\xfe"),
        std::string("{\"method\":\"dev.gpurota.Acquire\",\"parameters\":{\"request\":{\"note\":"
                    "\"\xc3\"}}}"),
        std::string("{\"method\":\"dev.gpurota.Acquire\",\"parameters\":{\"uid\":0,\"request\":{"
                    "\"gpus\":-1}}}"),
        std::string(
            "{\"method\":\"dev.gpurota.Acquire\",\"parameters\":{\"request\":{\"gpus\":1e99}}}"),
        std::string("{\"method\":\"dev.gpurota.\\u001b[31m\"}"), std::string(20000, '['),
        "{\"method\":\"dev.gpurota.Update\",\"parameters\":{\"lease_id\":\"L1\",\"note\":\"" +
            std::string(60000, 'n') + "\"}}"}) {
    const RawClient client(daemon);
    ASSERT_TRUE(client.send(text + '\0'));
    const std::string answer = client.answer();
    EXPECT_EQ(answer.rfind("{\"error\":", 0), 0u) << text.substr(0, 80) << " -> " << answer;
    EXPECT_EQ(answer.find('\x1b'), std::string::npos);
  }
  EXPECT_TRUE(daemon.call(proto::Status{})->leases.empty());
}

TEST(Hostile, NameInAMessageDoesNotChangeTheCaller) {
  RunningDaemon daemon;
  const RawClient client(daemon);
  ASSERT_TRUE(client.send(
      std::string("{\"method\":\"dev.gpurota.Acquire\",\"parameters\":{\"uid\":0,"
                  "\"user\":\"root\",\"request\":{\"uid\":0,\"as_name\":\"\\u001b[31mroot\"}}}") +
      '\0'));
  EXPECT_EQ(client.answer().rfind("{\"parameters\":", 0), 0u);
  const auto status = daemon.call(proto::Status{});
  ASSERT_EQ(status->leases.size(), 1u);
  EXPECT_EQ(status->leases[0].uid, ::geteuid());
}

TEST(Hostile, UnrequestedDescriptorsAreClosed) {
  RunningDaemon daemon;
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const RawClient client(daemon);
  ASSERT_TRUE(client.send(std::string("{\"method\":\"dev.gpurota.GetInfo\"}") + '\0'));
  (void)client.answer();
  const auto before = open_files();
  const std::string call = std::string("{\"method\":\"dev.gpurota.GetInfo\"}") + '\0';
  for (int i = 0; i < 100; ++i) {
    if (!send_with_descriptor(client.fd(), call.data(), call.size(), client.fd())) break;
    if (client.answer().empty()) break;
  }
  EXPECT_TRUE(eventually([&] { return open_files() <= before; }));
  EXPECT_TRUE(serves(daemon));
}

}  // namespace
}  // namespace gpurota::testing
