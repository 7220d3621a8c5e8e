#include "client/locate.h"

#include "client/fake_daemon.h"
#include "ipc/unix_socket.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::client {
namespace {

TEST(Locate, TheFlagIsTakenAsItIs) {
  const testing::TempDir dir;
  const Location location = locate(dir.path());
  EXPECT_EQ(location.runtime_dir, dir.path());
  EXPECT_EQ(location.socket, dir.file("control.sock"));
  EXPECT_TRUE(location.chosen);
}

TEST(Locate, FailedSearchListsThePathsTried) {
  ::unsetenv("GPUROTA_RUNTIME_DIR");
  const Location location = locate(std::nullopt);
  EXPECT_FALSE(location.chosen);
  ASSERT_FALSE(location.looked.empty());
  EXPECT_EQ(location.looked.back(), "/run/gpurota/control.sock");
}

TEST(Connect, ReachesADaemon) {
  const testing::TempDir dir;
  const FakeDaemon daemon(dir.path());
  EXPECT_TRUE(connect(locate(dir.path())));
}

TEST(Connect, NoDaemonIsAnErrorThatSaysWhereAndHowToStartOne) {
  const testing::TempDir dir;
  const auto connection = connect(locate(dir.path()));
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, Code::kUnavailable);
  EXPECT_NE(connection.error().message.find(dir.file("control.sock")), std::string::npos);
  EXPECT_NE(connection.error().message.find("gpurotad --runtime-dir"), std::string::npos);
}

TEST(Connect, MissingDaemonIsReportedWithEveryPathTried) {
  Location location;
  location.socket = "/nonexistent/control.sock";
  location.looked = {"/a/control.sock", "/nonexistent/control.sock"};
  const auto connection = connect(location);
  ASSERT_FALSE(connection);
  EXPECT_NE(connection.error().message.find("/a/control.sock, /nonexistent/control.sock"),
            std::string::npos);
  EXPECT_NE(connection.error().message.find("systemctl start gpurotad"), std::string::npos);
}

// Connects as an ordinary user and exits with 0 if the error names the group to join.
[[noreturn]] void connect_as_nobody(const Location& location) {
  constexpr id_t kNobody = 65534;
  if (::geteuid() == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) {
      std::_Exit(2);
    }
  }
  const auto connection = connect(location);
  const bool told = !connection && connection.error().code == Code::kDenied &&
                    connection.error().message.find("usermod -aG") != std::string::npos;
  std::_Exit(told ? 0 : 1);
}

TEST(Connect, ASocketOfAnotherGroupSaysWhichGroupToJoin) {
  const testing::TempDir dir;
  const auto listener = ipc::Listener::make(
      dir.file("control.sock"), {.type = SOCK_STREAM, .mode = 0060, .group = std::nullopt});
  ASSERT_TRUE(listener);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  EXPECT_EXIT(connect_as_nobody(locate(dir.path())), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gpurota::client
