#include "ipc/packet.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

int open_fds() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

class Packets : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    auto pair = make_socket_pair(GetParam());
    ASSERT_TRUE(pair);
    a_ = std::move(pair->first);
    b_ = std::move(pair->second);
  }

  std::string text(const Received& received) const {
    return {reinterpret_cast<const char*>(buffer_.data()), received.size};
  }

  Fd a_, b_;
  std::array<std::byte, 64> buffer_{};
};

TEST_P(Packets, CarryBytesAndDescriptors) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const Fd reader(pipe_ends[0]);
  Fd writer(pipe_ends[1]);
  ASSERT_EQ(*send_packet(a_.get(), bytes_of("hello"), std::array{writer.get(), reader.get()}),
            IoState::kDone);
  const auto received = receive_packet(b_.get(), buffer_, 2);
  ASSERT_TRUE(received);
  EXPECT_EQ(text(*received), "hello");
  ASSERT_EQ(received->fds.size(), 2u);
  EXPECT_TRUE(::fcntl(received->fds[0].get(), F_GETFD) & FD_CLOEXEC);
  writer.reset();
  ASSERT_EQ(::write(received->fds[0].get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(reader.get(), &c, 1), 1);
}

TEST_P(Packets, CloseUnexpectedDescriptors) {
  const int before = open_fds();
  for (const std::size_t allowed : {0u, 1u, 2u}) {
    ASSERT_EQ(*send_packet(a_.get(), bytes_of("x"), std::array{0, 1, 2}), IoState::kDone);
    const auto received = receive_packet(b_.get(), buffer_, allowed);
    ASSERT_TRUE(received);
    EXPECT_EQ(text(*received), "x");
    EXPECT_TRUE(received->fds_dropped) << allowed;
    EXPECT_TRUE(received->fds.empty()) << allowed;
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_P(Packets, ReportWouldBlockAndClosedPeer) {
  EXPECT_EQ(receive_packet(b_.get(), buffer_, 0)->state, IoState::kWouldBlock);
  EXPECT_FALSE(has_packet(b_.get()));
  EXPECT_FALSE(has_unread(a_.get()));
  ASSERT_EQ(*send_packet(a_.get(), bytes_of("x")), IoState::kDone);
  EXPECT_TRUE(has_unread(a_.get()));
  EXPECT_TRUE(has_packet(b_.get()));
  ASSERT_TRUE(receive_packet(b_.get(), buffer_, 0));
  EXPECT_FALSE(has_packet(b_.get())) << "it has been taken";
  a_.reset();
  EXPECT_TRUE(has_packet(b_.get())) << "its end";
  EXPECT_EQ(receive_packet(b_.get(), buffer_, 0)->state, IoState::kClosed);
  EXPECT_EQ(*send_packet(b_.get(), bytes_of("x")), IoState::kClosed) << "and no SIGPIPE";
  EXPECT_EQ(send_some(b_.get(), std::string_view("x"))->state, IoState::kClosed);
}

TEST_P(Packets, AFullSocketWouldBlock) {
  const std::string block(4096, 'x');
  IoState state = IoState::kDone;
  for (int i = 0; i < 10000 && state == IoState::kDone; ++i) {
    state = *send_packet(a_.get(), bytes_of(block));
  }
  EXPECT_EQ(state, IoState::kWouldBlock);
}

INSTANTIATE_TEST_SUITE_P(Types, Packets, ::testing::Values(SOCK_STREAM, SOCK_SEQPACKET));

TEST(Packet, LongPacketIsMarkedTruncated) {
  const auto pair = make_socket_pair(SOCK_SEQPACKET);
  ASSERT_EQ(*send_packet(pair->first.get(), bytes_of("0123456789")), IoState::kDone);
  std::array<std::byte, 4> small{};
  const auto received = receive_packet(pair->second.get(), small, 0);
  EXPECT_EQ(received->size, 4u);
  EXPECT_TRUE(received->truncated);
}

}  // namespace
}  // namespace gpurota::ipc
