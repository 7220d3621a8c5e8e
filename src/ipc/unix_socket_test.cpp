#include "ipc/unix_socket.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

using namespace std::chrono_literals;
using testing::TempDir;

bool says(const Error& error, const char* part) {
  return error.message.find(part) != std::string::npos;
}

class UnixSocket : public ::testing::Test {
 protected:
  Result<Listener> listen(mode_t mode = 0600) {
    return Listener::make(path_, {.type = SOCK_STREAM, .mode = mode, .group = {}});
  }
  const TempDir temp_;
  const std::string path_ = temp_.file("control.sock");
};

TEST_F(UnixSocket, ConnectsAndAccepts) {
  auto listener = listen();
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_FALSE(*listener->accept());
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(client) << client.error().message;
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(*accepted);
  const int fd = (*accepted)->get();
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(fd, F_GETFL) & O_NONBLOCK);
  EXPECT_FALSE(::fcntl(client->get(), F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(::fcntl(client->get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(UnixSocket, HasTheModeAskedWhateverTheUmask) {
  const mode_t old = ::umask(0777);
  const auto open_to_all = listen(0666);
  ::umask(old);
  ASSERT_TRUE(open_to_all);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0666u);
}

TEST_F(UnixSocket, IsRemovedWithItsListener) {
  ASSERT_TRUE(listen());
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  EXPECT_EQ(client.error().code, Code::kUnavailable);
  EXPECT_TRUE(says(client.error(), "not running")) << client.error().message;
}

TEST_F(UnixSocket, ALiveDaemonIsNotReplaced) {
  const auto first = listen();
  const auto second = listen();
  ASSERT_FALSE(second);
  EXPECT_TRUE(says(second.error(), "another gpurotad is running here")) << second.error().message;
  EXPECT_TRUE(answers(path_, SOCK_STREAM)) << "and it still answers";
}

TEST_F(UnixSocket, TheSocketOfAKilledDaemonIsReplaced) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto listener = listen();
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(::access(path_.c_str(), F_OK), 0);
  EXPECT_EQ(connect_unix(path_, SOCK_STREAM, 1s).error().code, Code::kUnavailable);
  EXPECT_TRUE(listen());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(UnixSocket, AnythingElseAtItsPathIsLeftAlone) {
  testing::write_file(path_, "precious");
  const auto listener = listen();
  ASSERT_FALSE(listener);
  EXPECT_TRUE(says(listener.error(), "is not a socket")) << listener.error().message;
  EXPECT_EQ(testing::read_file(path_), "precious");
}

TEST_F(UnixSocket, TooLongPathIsReportedWithTheRemedy) {
  const std::string longer = temp_.file(std::string(120, 'x'));
  for (const Error& error : {Listener::make(longer, {.type = SOCK_STREAM, .group = {}}).error(),
                             connect_unix(longer, SOCK_STREAM, 1s).error()}) {
    EXPECT_EQ(error.code, Code::kInvalid);
    EXPECT_TRUE(says(error, "107")) << error.message;
    EXPECT_TRUE(says(error, "--runtime-dir")) << error.message;
  }
}

TEST_F(UnixSocket, ConnectingToABusyDaemonEndsAfterTheTimeout) {
  const auto listener = Listener::make(path_, {.type = SOCK_STREAM, .group = {}, .backlog = 0});
  ASSERT_TRUE(listener);
  std::vector<Result<Fd>> waiting;
  Code last = Code::kInternal;
  for (int i = 0; i < 10 && last != Code::kTimeout; ++i) {
    waiting.push_back(connect_unix(path_, SOCK_STREAM, 10ms));
    if (!waiting.back()) last = waiting.back().error().code;
  }
  EXPECT_EQ(last, Code::kTimeout);
  EXPECT_TRUE(answers(path_, SOCK_STREAM)) << "busy is not gone";
}

// A socket that somebody else made, as systemd does.
class PassedSocket : public UnixSocket {
 protected:
  PassedSocket() { umask_ = ::umask(0); }
  ~PassedSocket() override { ::umask(umask_); }
  // The receiver of the descriptor owns it.
  int make(int type, bool listening = true) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const int fd = ::socket(AF_UNIX, type, 0);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    if (listening) {
      EXPECT_EQ(::listen(fd, 8), 0);
    }
    return fd;
  }
  Result<Listener> take(int fd) {
    return Listener::make(path_, {.type = SOCK_STREAM, .mode = 0600, .group = {}, .passed = fd});
  }
  std::string refusal(int fd) {
    const auto listener = take(fd);
    return listener ? "none" : listener.error().message;
  }

 private:
  mode_t umask_;
};

TEST_F(PassedSocket, AClientThatConnectedBeforeIsAccepted) {
  const int fd = make(SOCK_STREAM);
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(client);
  auto listener = take(fd);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted);
  EXPECT_TRUE(*accepted);
  EXPECT_FALSE(*listener->accept()) << "it does not wait";
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

TEST_F(PassedSocket, AcceptsClientsForTheNextDaemon) {
  const int fd = make(SOCK_STREAM);
  const Fd of_systemd(::dup(fd));
  { ASSERT_TRUE(take(fd)); }
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(client) << client.error().message;
  auto next = take(::dup(of_systemd.get()));
  ASSERT_TRUE(next);
  EXPECT_TRUE(*next->accept());
}

TEST_F(PassedSocket, GetsTheModeInItsOptions) {
  const auto listener = take(make(SOCK_STREAM));
  ASSERT_TRUE(listener);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(PassedSocket, WrongSocketIsAnErrorWithTheRemedy) {
  const std::string of_other_type = refusal(make(SOCK_SEQPACKET));
  EXPECT_NE(of_other_type.find("ListenStream="), std::string::npos) << of_other_type;
  EXPECT_NE(of_other_type.find("restart gpurotad.socket"), std::string::npos) << of_other_type;
  ::unlink(path_.c_str());
  const std::string deaf = refusal(make(SOCK_STREAM, false));
  EXPECT_NE(deaf.find("does not listen"), std::string::npos) << deaf;
}

TEST_F(PassedSocket, ASocketWhoseFileIsGoneOrReplacedIsAnError) {
  const int fd = make(SOCK_STREAM);
  ::unlink(path_.c_str());
  const std::string gone = refusal(fd);
  EXPECT_NE(gone.find("nothing is at that path"), std::string::npos) << gone;
  const int second = make(SOCK_STREAM);
  ::unlink(path_.c_str());
  Fd(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).reset();
  const std::string replaced = refusal(second);
  EXPECT_NE(replaced.find("another file"), std::string::npos) << replaced;
}

TEST_F(PassedSocket, OfAnotherUserIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const int fd = make(SOCK_STREAM);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  const std::string foreign = refusal(fd);
  EXPECT_NE(foreign.find("belongs to user 65534"), std::string::npos) << foreign;
}

// Trap: the last close of a descriptor that was sent may wait for as long as its sender likes.
TEST_F(UnixSocket, DescriptorsToAListenerAreRefused) {
  auto listener = listen();
  ASSERT_TRUE(listener);
  if (!refuse_descriptors(listener->fd())) GTEST_SKIP() << "needs Linux 6.16";
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(client);
  const auto send_one = [&] {
    char byte = 'x';
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = client->get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return ::sendmsg(client->get(), &message, MSG_NOSIGNAL) < 0 ? errno : 0;
  };
  EXPECT_EQ(send_one(), EPERM) << "before it is accepted";
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted);
  EXPECT_EQ(send_one(), EPERM);
}

TEST_F(UnixSocket, ClosesTheWaitingPeerWhenOutOfDescriptors) {
  auto listener = listen();
  ASSERT_TRUE(listener);
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(client);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const Fd probe(::dup(0));
  const rlimit none{static_cast<rlim_t>(probe.get()), old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::vector<Fd> filler;  // below the limit there may be holes
  for (Fd fd(::dup(0)); fd; fd = Fd(::dup(0))) filler.push_back(std::move(fd));
  const auto refused = listener->accept();
  const auto idle = listener->accept();
  ::setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  ASSERT_TRUE(idle) << "the peer is no longer waiting";
  EXPECT_FALSE(*idle);
  char c = 0;
  EXPECT_EQ(::read(client->get(), &c, 1), 0);
}

TEST_F(UnixSocket, NoPermissionIsToldApartFromNoDaemon) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  const auto listener = listen(0600);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    const auto client = connect_unix(path_, SOCK_STREAM, 1s);
    ::_exit(!client && client.error().code == Code::kDenied ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(UnixSocket, BlockingCanBeSwitched) {
  const auto listener = listen();
  const auto client = connect_unix(path_, SOCK_STREAM, 1s);
  ASSERT_TRUE(set_blocking(client->get(), false));
  char c = 0;
  EXPECT_EQ(::read(client->get(), &c, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(set_blocking(client->get(), true));
}

}  // namespace
}  // namespace gpurota::ipc
