#include "sys/device_files.h"

#include "base/fd.h"
#include "sys/device_memory.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

constexpr const char* kList =
    "user::rw-,user:1001:rw-,group::---,group:44:rw-,mask::rw-,other::---";

class DeviceFilesTest : public ::testing::Test {
 protected:
  DeviceFilesTest() {
    ::mkdir(dir.file("dev").c_str(), 0755);
    ::mkdir(dir.file("dev/nvidia-caps").c_str(), 0755);
    for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia0x"})
      make(name);
    make("nvidia-caps/nvidia-cap1");
  }
  void make(const std::string& name, mode_t mode = 0666) {
    write_file(path(name), "");
    ::chmod(path(name).c_str(), mode);
  }
  std::string path(const std::string& name) const { return dir.file("dev/" + name); }
  DeviceFiles read() const { return read_device_files(dir.path()).value(); }
  mode_t mode_of(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::stat(path(name).c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  Result<void> set(const std::string& name, const std::string& acl) const {
    return set_device_acl(dir.path(), name, read().at(name).inode, acl);
  }

  TempDir dir;
};

TEST_F(DeviceFilesTest, ReadsDeviceFilesOfGpusAndCapabilities) {
  EXPECT_THAT(read(), ElementsAre(Key("nvidia-caps/nvidia-cap1"), Key("nvidia0"), Key("nvidia1")));
  EXPECT_EQ(read()["nvidia0"].acl, "user::rw-,group::rw-,other::rw-");
  EXPECT_EQ(read()["nvidia0"].owner, ::geteuid());
  EXPECT_THAT(read_device_files(dir.file("nowhere")).value(), IsEmpty());
}

TEST_F(DeviceFilesTest, AclIsSetAndReadBackWithTheModeAsMask) {
  const auto set = this->set("nvidia0", kList);
  if (!set && set.error().native == ENOTSUP) GTEST_SKIP() << set.error().message;
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(read()["nvidia0"].acl, kList);
  EXPECT_EQ(mode_of("nvidia0"), 0660u);
  EXPECT_EQ(mode_of("nvidia1"), 0666u);
}

TEST_F(DeviceFilesTest, RestoresModeAndAccessListExactly) {
  for (const mode_t mode : {0666, 0660, 0640, 0600}) {
    make("nvidia0", mode);
    const std::string before = read()["nvidia0"].acl;
    if (const auto set = this->set("nvidia0", kList); !set) GTEST_SKIP() << set.error().message;
    ASSERT_TRUE(set("nvidia0", before));
    EXPECT_EQ(mode_of("nvidia0"), mode);
    EXPECT_EQ(read()["nvidia0"].acl, before);
  }
}

TEST_F(DeviceFilesTest, AnotherFileOfTheNameIsNotTouched) {
  const std::uint64_t inode = read()["nvidia0"].inode;
  write_file(dir.file("new"), "");
  ASSERT_EQ(::rename(dir.file("new").c_str(), path("nvidia0").c_str()), 0);
  const auto set = set_device_acl(dir.path(), "nvidia0", inode, kList);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, Code::kGone);
  ::unlink(path("nvidia0").c_str());
  EXPECT_EQ(set_device_acl(dir.path(), "nvidia0", inode, kList).error().code, Code::kGone);
}

TEST_F(DeviceFilesTest, SymbolicLinkIsNotADeviceFile) {
  write_file(dir.file("passwd"), "");
  ::unlink(path("nvidia1").c_str());
  ASSERT_EQ(::symlink(dir.file("passwd").c_str(), path("nvidia1").c_str()), 0);
  EXPECT_THAT(read(), ElementsAre(Key("nvidia-caps/nvidia-cap1"), Key("nvidia0")));
}

TEST_F(DeviceFilesTest, MalformedAclIsRefused) {
  const auto set = this->set("nvidia0", "everybody");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("everybody"));
  EXPECT_EQ(mode_of("nvidia0"), 0666u);
}

TEST_F(DeviceFilesTest, ChangeOfAFileIsReportedOnce) {
  const auto watch = watch_device_files(dir.path());
  ASSERT_TRUE(watch) << watch.error().message;
  const auto is_told = [&] {
    pollfd poll{watch->get(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  };
  EXPECT_FALSE(is_told());
  ::chmod(path("nvidia0").c_str(), 0600);
  EXPECT_TRUE(is_told());
  take_device_changes(watch->get());
  EXPECT_FALSE(is_told());
  make("nvidia-caps/nvidia-cap7");
  EXPECT_TRUE(is_told());
  EXPECT_FALSE(watch_device_files(dir.file("nowhere")));
}

TEST_F(DeviceFilesTest, AProcessWithAnOpenDeviceFileIsFound) {
  const pid_t child = ::fork();
  if (child == 0) {
    const Fd file(::open(path("nvidia1").c_str(), O_RDWR));
    ::pause();
    ::_exit(0);
  }
  std::vector<DeviceOpener> found;
  for (int i = 0; i < 1000 && found.empty(); ++i) {
    found = read_device_openers(dir.path(), {"nvidia0", "nvidia1"});
    ::usleep(1000);
  }
  ::kill(child, SIGKILL);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, child);
  EXPECT_EQ(found[0].uid, ::geteuid());
  EXPECT_TRUE(found[0].groups.contains(::getegid()));
  EXPECT_THAT(found[0].files, ElementsAre("nvidia1"));
}

TEST_F(DeviceFilesTest, FormerModeIsStoredUntilTheNextBoot) {
  const std::string memory = dir.file("device-files");
  EXPECT_THAT(read_device_memory(memory, "boot1").value(), IsEmpty());
  const DeviceFiles files = read();
  ASSERT_TRUE(write_device_memory(memory, "boot1", files));
  EXPECT_EQ(read_device_memory(memory, "boot1").value(), files);
  EXPECT_THAT(read_device_memory(memory, "boot2").value(), IsEmpty());
  ASSERT_TRUE(remove_device_memory(memory));
  ASSERT_TRUE(remove_device_memory(memory));
  EXPECT_THAT(read_device_memory(memory, "boot1").value(), IsEmpty());
}

TEST_F(DeviceFilesTest, DamagedRecordOfFormerModesIsAnError) {
  write_file(dir.file("device-files"), "what\n");
  const auto read = read_device_memory(dir.file("device-files"), "boot1");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("damaged"));
}

}  // namespace
}  // namespace gpurota::sys
