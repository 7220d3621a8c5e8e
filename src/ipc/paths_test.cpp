#include "ipc/paths.h"

#include "ipc/unix_socket.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

using testing::TempDir;

TEST(Paths, RootUsesSystemPathsWhateverXdgVariables) {
  Environment environment;
  environment.uid = 0;
  environment.xdg_runtime_dir = "/run/user/1000";
  environment.home = "/root";
  const Paths paths = daemon_paths(environment);
  EXPECT_EQ(paths.runtime_dir, "/run/gpurota");
  EXPECT_EQ(paths.state_dir, "/var/lib/gpurota");
  EXPECT_EQ(paths.config_file, "/etc/gpurota/gpurota.toml");
  EXPECT_TRUE(own_runtime_dirs(environment).empty());
}

TEST(Paths, UserPathsFollowXdgVariables) {
  Environment environment;
  environment.uid = 1000;
  environment.home = "/home/a";
  Paths paths = daemon_paths(environment);
  EXPECT_EQ(paths.runtime_dir, "/tmp/gpurota-1000");
  EXPECT_EQ(paths.state_dir, "/home/a/.local/state/gpurota");
  EXPECT_EQ(paths.config_file, "/home/a/.config/gpurota/gpurota.toml");

  environment.xdg_runtime_dir = "/run/user/1000";
  environment.xdg_state_home = "/s";
  environment.xdg_config_home = "/c";
  paths = daemon_paths(environment);
  EXPECT_EQ(paths.runtime_dir, "/run/user/1000/gpurota");
  EXPECT_EQ(paths.state_dir, "/s/gpurota");
  EXPECT_EQ(paths.config_file, "/c/gpurota/gpurota.toml");

  environment.runtime_dir = "/mine";
  EXPECT_EQ(daemon_paths(environment).runtime_dir, "/mine");
}

TEST(Paths, WithoutAHomeTheStateIsInTheRuntimeDirectory) {
  Environment environment;
  environment.uid = 1000;
  EXPECT_EQ(daemon_paths(environment).state_dir, "/tmp/gpurota-1000/state");
}

TEST(Paths, EnvironmentIgnoresUnusableXdgVariables) {
  const TempDir temp;
  ::setenv("GPUROTA_RUNTIME_DIR", "here", 1);
  ::setenv("XDG_RUNTIME_DIR", temp.path().c_str(), 1);
  ::setenv("XDG_STATE_HOME", "relative", 1);
  Environment environment = read_environment();
  EXPECT_EQ(environment.runtime_dir, absolute("here"));
  EXPECT_EQ(environment.xdg_runtime_dir, temp.path());
  EXPECT_EQ(environment.xdg_state_home, "") << "the XDG rules say to ignore relative ones";
  ::setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
  EXPECT_EQ(read_environment().xdg_runtime_dir, "");
  ::unsetenv("GPUROTA_RUNTIME_DIR");
  ::unsetenv("XDG_RUNTIME_DIR");
  ::unsetenv("XDG_STATE_HOME");
}

TEST(FindRuntimeDir, UsesTheUsersOwnDaemonOnlyIfItAnswers) {
  const TempDir temp;
  Environment environment;
  // Root has no daemon of its own besides the system's, so the test acts for another user.
  environment.uid = ::geteuid() == 0 ? 1000 : ::geteuid();
  environment.xdg_runtime_dir = temp.path();
  EXPECT_EQ(find_runtime_dir(std::nullopt, environment), "/run/gpurota");

  const std::string own = temp.file("gpurota");
  ASSERT_EQ(::mkdir(own.c_str(), 0700), 0);
  ASSERT_EQ(::chown(own.c_str(), environment.uid, static_cast<gid_t>(-1)), 0);
  {
    const auto listener = Listener::make(control_socket(own), {.type = SOCK_STREAM, .group = {}});
    ASSERT_TRUE(listener);
    EXPECT_EQ(find_runtime_dir(std::nullopt, environment), own);
    ASSERT_EQ(::chmod(own.c_str(), 0777), 0);
    EXPECT_EQ(find_runtime_dir(std::nullopt, environment), "/run/gpurota")
        << "anybody could be listening there";
    ASSERT_EQ(::chmod(own.c_str(), 0700), 0);
  }
  EXPECT_EQ(find_runtime_dir(std::nullopt, environment), "/run/gpurota");
}

TEST(FindRuntimeDir, TakesTheFlagThenTheVariable) {
  Environment environment;
  environment.uid = 1000;
  environment.runtime_dir = "/variable";
  EXPECT_EQ(find_runtime_dir("/flag", environment), "/flag");
  EXPECT_EQ(find_runtime_dir("flag", environment), absolute("flag"));
  EXPECT_EQ(find_runtime_dir(std::nullopt, environment), "/variable");
}

}  // namespace
}  // namespace gpurota::ipc
