#include "daemon/published_library.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include <sys/stat.h>

namespace gpurota::daemon {
namespace {

class PublishedLibraryTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return dir_.path() + "/" + name; }
  static std::string text_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static struct stat state_of(const std::string& file) {
    struct stat state {};
    EXPECT_EQ(::stat(file.c_str(), &state), 0);
    return state;
  }

 private:
  testing::TempDir dir_;
};

TEST_F(PublishedLibraryTest, CopyIsLoadableByEverybody) {
  testing::write_file(path("own.so"), "new");
  const auto copy = publish_library(path("own.so"), path("a/b"));
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(*copy, path("a/b/libgpurota.so"));
  EXPECT_EQ(text_of(*copy), "new");
  EXPECT_EQ(state_of(*copy).st_mode & 07777, 0755U);
  EXPECT_EQ(state_of(path("a/b")).st_mode & 07777, 0755U);
}

TEST_F(PublishedLibraryTest, EqualCopyStaysAndOtherCopyIsReplacedByANewFile) {
  testing::write_file(path("own.so"), "new");
  const auto first = publish_library(path("own.so"), path("a"));
  ASSERT_TRUE(first);
  const auto inode = state_of(*first).st_ino;
  ASSERT_TRUE(publish_library(path("own.so"), path("a")));
  EXPECT_EQ(state_of(*first).st_ino, inode);
  std::ifstream loaded(*first);  // like a program that has it mapped
  testing::write_file(path("own.so"), "newer");
  ASSERT_TRUE(publish_library(path("own.so"), path("a")));
  EXPECT_EQ(text_of(*first), "newer");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(loaded), {}), "new");
}

TEST_F(PublishedLibraryTest, CopyIsLoadableByEverybodyWithAnyUmask) {
  testing::write_file(path("own.so"), "new");
  const mode_t before = ::umask(0077);
  const auto copy = publish_library(path("own.so"), path("a"));
  EXPECT_EQ(::chmod(path("a/libgpurota.so").c_str(), 0600), 0);
  const auto again = publish_library(path("own.so"), path("a"));
  ::umask(before);
  ASSERT_TRUE(copy && again);
  EXPECT_EQ(state_of(path("a")).st_mode & 07777, 0755U);
  EXPECT_EQ(state_of(*again).st_mode & 07777, 0755U);
}

TEST_F(PublishedLibraryTest, ReportsWhatIsMissing) {
  EXPECT_EQ(publish_library("", path("a")).error().code, Code::kNotFound);
  EXPECT_NE(publish_library(path("none.so"), path("a")).error().message.find("none.so"),
            std::string::npos);
  testing::write_file(path("own.so"), "new");
  testing::write_file(path("file"), "");
  EXPECT_NE(publish_library(path("own.so"), path("file/a")).error().message.find("file/a"),
            std::string::npos);
}

}  // namespace
}  // namespace gpurota::daemon
