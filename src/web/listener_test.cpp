#include "web/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::web {
namespace {

using ::testing::HasSubstr;

// Connects to `port` from this address.
Fd connect_from(const char* from, int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  (void)::inet_pton(AF_INET, from, &address.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(Listener, ReportsAPortInUseWithTheRemedy) {
  const auto first = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(first) << first.error().message;
  const auto second = listen_at(first->address);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("ss -ltnp"));
  EXPECT_TRUE(is_kept_for_root({"127.0.0.1", 836}));
  EXPECT_FALSE(is_kept_for_root({"127.0.0.1", 9836}));
}

TEST(Listener, AllAddressesOfThisMachineCountAsOne) {
  const auto listener = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_FALSE(accept_visitor(*listener));
  const Fd one = connect_from("127.0.0.1", listener->address.port);
  const Fd other = connect_from("127.44.0.1", listener->address.port);
  const auto first = accept_visitor(*listener), second = accept_visitor(*listener);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->address, "127.44.0.1");
  EXPECT_EQ(first->group, second->group);
}

// Runs `work` in a child, because it uses fixed descriptor numbers; returns the exit status.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Passes the descriptor as systemd does when it starts a service.
void pass(int fd) {
  (void)::dup2(fd, 3);
  (void)::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  (void)::setenv("LISTEN_FDS", "1", 1);
}

TEST(Listener, TakesWhatSystemdListensAt) {
  const auto listener = listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(in_child([&] {
              pass(listener->socket.get());
              const auto passed = take_passed_listeners();
              if (!passed || passed->size() != 1) return 1;
              if (passed->front().address != listener->address) return 2;
              if (std::getenv("LISTEN_FDS") != nullptr) return 3;
              const Fd client = connect_from("127.0.0.1", listener->address.port);
              return accept_visitor(passed->front()) ? 0 : 4;
            }),
            0);
}

TEST(Listener, TakesNothingThatIsForAnotherProcess) {
  EXPECT_EQ(in_child([] {
              (void)::setenv("LISTEN_PID", "1", 1);
              (void)::setenv("LISTEN_FDS", "1", 1);
              const auto passed = take_passed_listeners();
              return passed && passed->empty() ? 0 : 1;
            }),
            0);
}

TEST(Listener, RefusesInvalidPortsWithAValidExample) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd one(ends[0]), other(ends[1]);
  EXPECT_EQ(in_child([&] {
              pass(one.get());
              const auto passed = take_passed_listeners();
              if (passed || passed.error().code != Code::kInvalid) return 1;
              return passed.error().message.find("ListenStream=") == std::string::npos ? 2 : 0;
            }),
            0);
}

}  // namespace
}  // namespace gpurota::web
