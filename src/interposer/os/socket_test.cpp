// The program may take the numbers of our descriptors for its own files at any time.
#include "interposer/os/socket.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

namespace gpurota::interposer {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends.data()), 0); }
  ~Pair() {
    for (const int end : ends) (void)::close(end);
  }
  // The text that has come to the other end; empty: nothing.
  std::string received() const {
    std::array<char, 64> text;
    const ssize_t n = ::recv(ends[1], text.data(), text.size(), MSG_DONTWAIT);
    return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "";
  }
  std::array<int, 2> ends;
};

class SocketTest : public ::testing::Test {
 protected:
  SocketTest() { EXPECT_TRUE(adopt_socket(::dup(daemon_.ends[0]), &socket_)); }
  ~SocketTest() override { close_socket(&socket_); }

  // The text of one message; empty: there is none.
  std::string receive() {
    std::array<char, 64> text;
    Descriptors none;
    const long n = receive_packet(socket_, text.data(), text.size(), &none, now_ms());
    return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : "";
  }

  Pair daemon_, programs_;
  Socket socket_{};
};

TEST_F(SocketTest, IsUsedUnderANumberThatTheProgramHasNotSeen) {
  HeldSocket held(socket_);
  ASSERT_GE(held.fd(), 0);
  EXPECT_NE(held.fd(), socket_.fd);
  ASSERT_EQ(::dup2(programs_.ends[0], socket_.fd), socket_.fd);
  EXPECT_EQ(::send(held.fd(), "a", 1, 0), 1);
  EXPECT_EQ(daemon_.received(), "a");
  EXPECT_TRUE(held.release());
  EXPECT_EQ(HeldSocket(socket_).fd(), -1) << "the number is the program's now";
}

TEST_F(SocketTest, NumberReusedByTheProgramIsLeftOpen) {
  HeldSocket held(socket_);
  const int number = held.fd();
  ASSERT_EQ(::dup2(programs_.ends[0], number), number);
  EXPECT_FALSE(held.release());
  EXPECT_NE(::fcntl(number, F_GETFD), -1) << "it is not ours to close";
  (void)::close(number);
}

TEST_F(SocketTest, LeavesNoDescriptorOpen) {
  const int next = ::fcntl(socket_.fd, F_DUPFD_CLOEXEC, 960);
  (void)::close(next);
  EXPECT_TRUE(send_packet(socket_, "x", 1, now_ms()));
  EXPECT_EQ(receive(), "");
  EXPECT_EQ(::fcntl(next, F_GETFD), -1);
}

// The number changes hands between the program and us as fast as possible.
TEST_F(SocketTest, AProgramThatTakesTheNumberGetsAndLosesNoMessage) {
  constexpr int kTimes = 20000;
  ASSERT_EQ(::send(programs_.ends[1], "theirs", 6, 0), 6);
  std::atomic<bool> over{false};
  std::thread program([&] {
    while (!over) {
      (void)::dup2(programs_.ends[0], socket_.fd);
      (void)::dup2(daemon_.ends[0], socket_.fd);
    }
  });
  int sent = 0;
  for (int i = 0; i < kTimes; ++i) {
    if (send_packet(socket_, "ours", 4, now_ms())) ++sent;
    while (daemon_.received() == "ours") {
    }
    EXPECT_NE(receive(), "theirs");
  }
  over = true;
  program.join();
  EXPECT_GT(sent, 0);
  EXPECT_EQ(programs_.received(), "");
  std::array<char, 8> text;
  EXPECT_EQ(::recv(programs_.ends[0], text.data(), text.size(), MSG_DONTWAIT), 6)
      << "what was sent to the program is still there for it";
}

}  // namespace
}  // namespace gpurota::interposer
