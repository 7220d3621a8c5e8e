#include "client/connection.h"

#include "client/fake_daemon.h"
#include "ipc/paths.h"
#include "proto/service.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

namespace gpurota::client {
namespace {

class ConnectionTest : public ::testing::Test {
 protected:
  Connection open() {
    auto connection = Connection::open(ipc::control_socket(dir_.path()));
    EXPECT_TRUE(connection) << connection.error().message;
    return std::move(*connection);
  }
  // Waits for input, then takes an answer.
  static std::optional<proto::Answer<proto::Hold>> await(Connection& connection) {
    pollfd entry{connection.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 10000), 1);
    auto answer = connection.next_answer<proto::Hold>();
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : std::nullopt;
  }

  testing::TempDir dir_;
  FakeDaemon daemon_{dir_.path()};
};

TEST_F(ConnectionTest, CallsAreAnsweredOneAfterTheOther) {
  Connection connection = open();
  for (int i = 0; i < 3; ++i) {
    const auto info = connection.call(proto::GetInfo{});
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->version, proto::version());
  }
}

TEST_F(ConnectionTest, AnErrorOfTheDaemonArrivesWithItsCode) {
  daemon_.on_call([](const proto::Call&) -> std::optional<std::string> {
    return proto::error_json(proto::no_gpu_error("all 8 GPUs are taken", 0, 8));
  });
  const auto reply = open().call(proto::Acquire{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kNoGpu);
  EXPECT_EQ(reply.error().message, "all 8 GPUs are taken");
}

TEST_F(ConnectionTest, MalformedReplyIsAnError) {
  daemon_.on_call([](const proto::Call&) { return std::optional<std::string>("nonsense"); });
  const auto reply = open().call(proto::GetInfo{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kInternal);
}

TEST_F(ConnectionTest, ALargeReplyArrivesWhole) {
  const std::string name(3 << 20, 'n');
  daemon_.on_call([&](const proto::Call&) -> std::optional<std::string> {
    proto::ServiceInfo::Reply reply = proto::service_info();
    reply.vendor = name;
    return proto::reply_json<proto::ServiceInfo>(reply);
  });
  const auto reply = open().call(proto::ServiceInfo{});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->vendor, name);
}

TEST_F(ConnectionTest, AStreamGivesEachAnswerAndNeverWaits) {
  Connection connection = open();
  ASSERT_TRUE(connection.start_stream(proto::Hold{.lease_id = {1}}));
  const auto first = await(connection);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->continues);
  const auto nothing = connection.next_answer<proto::Hold>();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
  daemon_.end_lease(proto::Ended::kReleased, "by root");
  const auto last = await(connection);
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->continues);
  EXPECT_EQ(last->reply.ended, proto::Ended::kReleased);
}

TEST_F(ConnectionTest, CallToAStoppedDaemonFailsWithGone) {
  Connection connection = open();
  ASSERT_TRUE(connection.call(proto::GetInfo{}));
  daemon_.stop();
  const auto reply = connection.call(proto::GetInfo{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kGone);
}

// A daemon is killed in the middle of a call, and the next daemon gets the call.
TEST_F(ConnectionTest, ACallThatOnlyReadsIsSentToTheNextDaemon) {
  std::atomic<int> calls{0};
  daemon_.on_call([&](const proto::Call&) -> std::optional<std::string> {
    if (calls++ == 0) return std::string();
    return std::nullopt;
  });
  const auto info = open().call(proto::GetInfo{});
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(calls, 2);
}

TEST_F(ConnectionTest, ACallThatMayHaveDoneSomethingIsNotSentTwice) {
  std::atomic<int> calls{0};
  daemon_.on_call([&](const proto::Call&) -> std::optional<std::string> {
    ++calls;
    return std::string();
  });
  const auto reply = open().call(proto::Acquire{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kGone);
  EXPECT_EQ(calls, 1);
}

TEST_F(ConnectionTest, DaemonThatAlwaysHangsUpIsNotRetriedForever) {
  std::atomic<int> calls{0};
  daemon_.on_call([&](const proto::Call&) -> std::optional<std::string> {
    ++calls;
    return std::string();
  });
  const auto reply = open().call(proto::GetInfo{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kGone);
  EXPECT_EQ(calls, 3);
}

// The lease that the connection held has ended with it, so the next call must not be answered as if
// the lease still existed.
TEST_F(ConnectionTest, ConnectionThatHoldsALeaseIsNotReplaced) {
  Connection connection = open();
  ASSERT_TRUE(connection.call(proto::Acquire{}));
  daemon_.on_call([](const proto::Call&) { return std::optional<std::string>(std::string()); });
  const auto reply = connection.call(proto::GetInfo{});
  ASSERT_FALSE(reply);
  EXPECT_EQ(daemon_.calls().size(), 2u);
}

// The daemon accepts and closes with the call unread, so nothing has been done.
TEST_F(ConnectionTest, ACallThatWasNotReadIsSentToTheNextDaemon) {
  const std::string path = dir_.file("dying.sock");
  auto listener = ipc::Listener::make(path, {.type = SOCK_STREAM, .group = std::nullopt});
  ASSERT_TRUE(listener);
  std::thread dying([&] {
    for (int closed = 0; closed < 2; ++closed) {
      pollfd waiting{listener->fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 10000), 1);
      const auto accepted = listener->accept();
      ASSERT_TRUE(accepted && *accepted);
      pollfd sent{(*accepted)->get(), POLLIN, 0};
      ASSERT_EQ(::poll(&sent, 1, 10000), 1);
    }
    pollfd waiting{listener->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10000), 1);
    const auto accepted = listener->accept();
    ASSERT_TRUE(accepted && *accepted);
    const std::string reply = proto::reply_json<proto::Drain>({});
    ASSERT_GT(::send((*accepted)->get(), reply.c_str(), reply.size() + 1, MSG_NOSIGNAL), 0);
    pollfd read{(*accepted)->get(), POLLRDHUP, 0};
    (void)::poll(&read, 1, 10000);
  });
  const auto reply = Connection::open(path)->call(proto::Drain{});
  EXPECT_TRUE(reply) << reply.error().message;
  dying.join();
}

TEST_F(ConnectionTest, MessageTooLongForTheDaemonIsRefusedByTheClient) {
  auto listener =
      ipc::Listener::make(dir_.file("mute.sock"), {.type = SOCK_STREAM, .group = std::nullopt});
  ASSERT_TRUE(listener);
  auto connection = Connection::open(dir_.file("mute.sock"));
  ASSERT_TRUE(connection);
  proto::AddJob job;
  job.environment = {{"A", std::string(proto::kMaxCallBytes, 'x')}};
  const auto reply = connection->call(job);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kLimit);
  EXPECT_NE(reply.error().message.find("too long"), std::string::npos) << reply.error().message;
}

TEST_F(ConnectionTest, ADaemonThatDoesNotAnswerIsATimeout) {
  auto listener =
      ipc::Listener::make(dir_.file("mute.sock"), {.type = SOCK_STREAM, .group = std::nullopt});
  ASSERT_TRUE(listener);
  auto connection = Connection::open(dir_.file("mute.sock"));
  ASSERT_TRUE(connection);
  const auto reply = connection->call(proto::GetInfo{}, milliseconds(20));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
}

}  // namespace
}  // namespace gpurota::client
