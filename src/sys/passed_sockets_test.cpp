#include "sys/passed_sockets.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

class PassedSocketsTest : public ::testing::Test {
 protected:
  // Does in a child what systemd does between fork and exec, then calls `body`, whose result is the
  // exit code. A child is needed because systemd passes descriptors by fixed numbers, which this
  // process uses for other files.
  static bool in_child(const std::vector<int>& sockets, const char* names,
                       bool (*body)(const std::vector<std::string>& paths),
                       const std::vector<std::string>& paths) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      std::vector<int> high;  // moved up first: the numbers may overlap
      for (const int socket : sockets) high.push_back(::fcntl(socket, F_DUPFD, 100));
      for (std::size_t i = 0; i < high.size(); ++i) (void)::dup2(high[i], 3 + static_cast<int>(i));
      ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
      ::setenv("LISTEN_FDS", std::to_string(sockets.size()).c_str(), 1);
      ::setenv("LISTEN_FDNAMES", names, 1);
      ::_exit(body(paths) ? 0 : 1);
    }
    int status = -1;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  static Fd listen(const std::string& path, int type) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    Fd fd(::socket(AF_UNIX, type, 0));
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
  }

  testing::TempDir dir_;
  std::vector<std::string> paths_ = {dir_.file("control.sock"), dir_.file("tenant.sock")};
};

TEST_F(PassedSocketsTest, NoSocketWithoutSystemdsVariables) {
  const auto found = take_passed_sockets(paths_);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->at(0));
  EXPECT_FALSE(found->at(1));
}

TEST_F(PassedSocketsTest, EachIsFoundByItsPathInWhateverOrderTheyCome) {
  const Fd control = listen(paths_[0], SOCK_STREAM), tenant = listen(paths_[1], SOCK_SEQPACKET);
  const auto body = [](const std::vector<std::string>& paths) {
    const auto found = take_passed_sockets(paths);
    return found && found->at(0).get() == 4 && found->at(1).get() == 3 &&
           ::fcntl(3, F_GETFD) == FD_CLOEXEC && ::getenv("LISTEN_FDS") == nullptr;
  };
  EXPECT_TRUE(
      in_child({tenant.get(), control.get()}, "gpurotad.socket:gpurotad.socket", body, paths_));
}

TEST_F(PassedSocketsTest, OneOfTheSocketsMayBePassedAlone) {
  const Fd control = listen(paths_[0], SOCK_STREAM);
  const auto body = [](const std::vector<std::string>& paths) {
    const auto found = take_passed_sockets(paths);
    return found && found->at(0).get() == 3 && !found->at(1);
  };
  EXPECT_TRUE(in_child({control.get()}, "gpurotad.socket", body, paths_));
}

TEST_F(PassedSocketsTest, ASocketElsewhereIsAnErrorThatSaysWhereAndWhatToDo) {
  const Fd other = listen(dir_.file("other.sock"), SOCK_STREAM);
  const auto body = [](const std::vector<std::string>& paths) {
    const auto found = take_passed_sockets(paths);
    return !found && found.error().message.find("other.sock") != std::string::npos &&
           found.error().message.find("'site.socket'") != std::string::npos &&
           found.error().message.find("ListenStream=") != std::string::npos;
  };
  EXPECT_TRUE(in_child({other.get()}, "site.socket", body, paths_));
}

TEST_F(PassedSocketsTest, DescriptorThatIsNotASocketAtAPathIsAnError) {
  const Fd file(::open("/dev/null", O_RDONLY));
  const Fd unbound(::socket(AF_UNIX, SOCK_STREAM, 0));
  const auto body = [](const std::vector<std::string>& paths) {
    return !take_passed_sockets(paths);
  };
  EXPECT_TRUE(in_child({file.get()}, "a", body, paths_));
  EXPECT_TRUE(in_child({unbound.get()}, "a", body, paths_));
}

}  // namespace
}  // namespace gpurota::sys
