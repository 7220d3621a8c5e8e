#include "sys/append_file.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

TEST(AppendFile, KeepsWhatIsThereAndBelongsToItsOwnerAlone) {
  const TempDir dir;
  const std::string path = dir.file("log");
  write_file(path, "one\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append("two\n"));
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(file->size(), 8u);
}

TEST(AppendFile, CutsATornLastLineOfACrash) {
  const TempDir dir;
  const std::string path = dir.file("log");
  for (const auto& [torn, whole] : {std::pair<std::string, std::string>{"a\nb\n{\"x\"", "a\nb\n"},
                                    {"{\"x", ""},
                                    {"a\n" + std::string(10000, 'x'), "a\n"}}) {
    write_file(path, torn);
    auto file = AppendFile::open(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append("next\n"));
    EXPECT_EQ(read_file(path), whole + "next\n");
  }
}

TEST(AppendFile, NeverFollowsALink) {
  const TempDir dir;
  write_file(dir.file("target"), "");
  ASSERT_EQ(::symlink(dir.file("target").c_str(), dir.file("link").c_str()), 0);
  EXPECT_FALSE(AppendFile::open(dir.file("link")));
}

TEST(AppendFile, AFullDiskLeavesNoHalfLine) {
  const TempDir dir;
  const std::string path = dir.file("log");
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file);
  // The limit on a file's size stands for a disk that fills up in the middle of a line.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{10, old.rlim_max};
  (void)std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_TRUE(file->append("12345\n"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_FALSE(file->append("67890\n"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_EQ(read_file(path), "12345\n");
  EXPECT_TRUE(file->append("x\n"));
  EXPECT_EQ(read_file(path), "12345\nx\n");
}

}  // namespace
}  // namespace gpurota::sys
