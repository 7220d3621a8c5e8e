#include "base/replace_file.h"

#include "base/fd.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ReplaceFile, PutsTheNewOneInThePlaceOfTheOldOne) {
  const testing::TempDir dir;
  const std::string path = dir.file("mark");
  ASSERT_TRUE(replace_file(path, "a longer text\n", 0600));
  ASSERT_TRUE(replace_file(path, "short\n", 0600));
  EXPECT_EQ(text_of(path), "short\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST(ReplaceFile, HasTheModeThatIsAskedForWhateverTheUmaskIs) {
  const testing::TempDir dir;
  const std::string path = dir.file("preload");
  const mode_t before = ::umask(0077);
  const auto replaced = replace_file(path, "text", 0644);
  ::umask(before);
  ASSERT_TRUE(replaced);
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0644U);
}

TEST(ReplaceFile, FileAppearsOnlyOnceItIsPrepared) {
  const testing::TempDir dir;
  const std::string path = dir.file("spec");
  const auto refuse = [&](int) -> Result<void> {
    EXPECT_FALSE(std::filesystem::exists(path));
    return fail(Code::kUnavailable, "no lists here");
  };
  EXPECT_EQ(replace_file(path, "text", 0600, refuse).error().message, "no lists here");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(ReplaceFile, LeavesTheOldOneWhereItCannotWrite) {
  const testing::TempDir dir;
  const std::string path = dir.file("mark");
  ASSERT_TRUE(replace_file(path, "old", 0600));
  std::filesystem::create_directory(path + ".new");
  const auto replaced = replace_file(path, "new", 0600);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().native, EEXIST);
  EXPECT_EQ(text_of(path), "old");
}

TEST(ReplaceFile, NeverWritesToAnExistingFile) {
  const testing::TempDir dir;
  const std::string path = dir.file("token"), elsewhere = dir.file("elsewhere");
  // Opened by somebody who waits for the next content.
  const Fd waiting(::open((path + ".new").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  ASSERT_TRUE(waiting);
  ASSERT_TRUE(replace_file(path, "secret", 0600));
  char byte = 0;
  EXPECT_EQ(::pread(waiting.get(), &byte, 1, 0), 0);
  std::ofstream(elsewhere) << "others'";
  std::filesystem::create_symlink(elsewhere, path + ".new");
  ASSERT_TRUE(replace_file(path, "secret", 0600));
  EXPECT_EQ(text_of(elsewhere), "others'");
  EXPECT_EQ(text_of(path), "secret");
}

}  // namespace
}  // namespace gpurota
