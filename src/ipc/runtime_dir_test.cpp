#include "ipc/runtime_dir.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

using testing::TempDir;

TEST(RuntimeDir, IsHeldByOneDaemon) {
  const TempDir temp;
  {
    const auto first = RuntimeDir::make(temp.file("run"), 0700);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = RuntimeDir::make(temp.file("run"), 0700);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another gpurotad is running here"), std::string::npos);
    EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  }
  EXPECT_TRUE(RuntimeDir::make(temp.file("run"), 0700));
}

TEST(RuntimeDir, FolderWritableByOthersIsRefused) {
  const TempDir temp;
  ASSERT_EQ(::mkdir(temp.file("open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(temp.file("open").c_str(), 0777), 0);
  EXPECT_EQ(RuntimeDir::make(temp.file("open"), 0700).error().code, Code::kDenied);
  ASSERT_EQ(::symlink(temp.path().c_str(), temp.file("link").c_str()), 0);
  EXPECT_EQ(RuntimeDir::make(temp.file("link"), 0700).error().code, Code::kDenied);
}

}  // namespace
}  // namespace gpurota::ipc
