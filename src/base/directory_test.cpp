#include "base/directory.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota {
namespace {

using testing::TempDir;

TEST(MakeDirectory, MakesParentsAndTheModeAsked) {
  const TempDir temp;
  const std::string path = temp.file("a/b/c");
  ASSERT_TRUE(make_directory(path, 0700));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0700u);
  EXPECT_TRUE(make_directory(path, 0700)) << "an existing one of ours is fine";
}

TEST(MakeDirectory, PublicFolderIsOpenWhateverTheUmask) {
  const TempDir temp;
  const auto mode_of = [&temp](const char* name) {
    struct stat info {};
    EXPECT_EQ(::stat(temp.file(name).c_str(), &info), 0) << name;
    return info.st_mode & 07777u;
  };
  const mode_t before = ::umask(077);
  EXPECT_TRUE(make_directory(temp.file("a/b"), 0755));
  EXPECT_TRUE(make_directory(temp.file("c/d"), 0700));
  (void)::umask(before);
  EXPECT_EQ(mode_of("a"), 0755u);
  EXPECT_EQ(mode_of("a/b"), 0755u);
  EXPECT_EQ(mode_of("c"), 0700u) << "one's own folders stay as one wants them";
  EXPECT_EQ(mode_of("c/d"), 0700u);
}

TEST(MakeDirectory, SaysWhyItCannot) {
  const TempDir temp;
  testing::write_file(temp.file("file"), "");
  const auto below_file = make_directory(temp.file("file/dir"), 0700);
  ASSERT_FALSE(below_file);
  EXPECT_NE(below_file.error().message.find("Not a directory"), std::string::npos)
      << below_file.error().message;
  // Not even root can make directories in /sys. An error for "below" would only say that
  // "/sys/gpurota" is missing.
  const auto not_ours = make_directory("/sys/gpurota/below", 0700);
  ASSERT_FALSE(not_ours);
  EXPECT_EQ(not_ours.error().message.find("No such file"), std::string::npos)
      << not_ours.error().message;
  EXPECT_EQ(make_directory("relative", 0700).error().code, Code::kInvalid);
}

TEST(CheckOwnPlace, RefusesFoldersThatOthersCanWriteTo) {
  const TempDir temp;
  const std::string path = temp.file("a/b");
  ASSERT_TRUE(make_directory(path, 0755));
  EXPECT_TRUE(check_own_place(path));
  EXPECT_TRUE(check_own_place("/tmp")) << "in a sticky one others' files stay";
  EXPECT_EQ(check_own_place(temp.file("none")).error().code, Code::kNotFound);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  const auto open = check_own_place(path);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Code::kDenied);
  EXPECT_NE(open.error().message.find("chmod go-w " + path), std::string::npos);
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  // A user who may rename the folder may put another in its place.
  ASSERT_EQ(::chmod(temp.file("a").c_str(), 0777), 0);
  EXPECT_EQ(check_own_place(path).error().code, Code::kDenied);
  ASSERT_EQ(::chmod(temp.file("a").c_str(), 0755), 0);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(temp.file("a").c_str(), 65533, 65533), 0);
  EXPECT_NE(check_own_place(path).error().message.find("user 65533's"), std::string::npos);
}

TEST(CheckDirectory, RefusesWhatOthersCouldHaveMade) {
  const TempDir temp;
  const uid_t me = ::geteuid();
  EXPECT_EQ(check_directory(temp.file("none"), me).error().code, Code::kNotFound);

  testing::write_file(temp.file("file"), "");
  EXPECT_EQ(check_directory(temp.file("file"), me).error().code, Code::kDenied);

  ASSERT_EQ(::symlink(temp.path().c_str(), temp.file("link").c_str()), 0);
  EXPECT_NE(check_directory(temp.file("link"), me).error().message.find("symbolic link"),
            std::string::npos);

  ASSERT_EQ(::mkdir(temp.file("open").c_str(), 0700), 0);
  EXPECT_TRUE(check_directory(temp.file("open"), me));
  EXPECT_NE(check_directory(temp.file("open"), me + 1).error().message.find("belongs to"),
            std::string::npos);
  ASSERT_EQ(::chmod(temp.file("open").c_str(), 0777), 0);
  EXPECT_NE(check_directory(temp.file("open"), me).error().message.find("chmod go-w"),
            std::string::npos);
}

}  // namespace
}  // namespace gpurota
