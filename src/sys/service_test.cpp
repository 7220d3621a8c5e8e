#include "sys/service.h"

#include "base/fd.h"
#include "sys/journal.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

namespace gpurota::sys {
namespace {

TEST(Service, TellsTheServiceManager) {
  const testing::TempDir temp;
  const std::string path = temp.file("notify");
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  notify_ready();
  notify_stopping();
  ::unsetenv("NOTIFY_SOCKET");
  std::array<char, 256> buffer;
  const auto next = [&] {
    const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    return std::string(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  };
  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(next(), "STOPPING=1");
}

TEST(Journal, IsUsedOnlyWhereStderrIsConnectedToIt) {
  ::unsetenv("JOURNAL_STREAM");
  EXPECT_FALSE(stderr_is_journal());
  ::setenv("JOURNAL_STREAM", "1:2", 1);
  EXPECT_FALSE(stderr_is_journal()) << "inherited by a program whose stderr is something else";
  ::setenv("JOURNAL_STREAM", "nonsense", 1);
  EXPECT_FALSE(stderr_is_journal());
  ::unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace gpurota::sys
