#include "sys/spec_folder.h"

#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <sys/acl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using ::testing::HasSubstr;

// A folder in memory; a test's usual folder may be on a disk.
class SpecFolder : public ::testing::Test {
 protected:
  SpecFolder() {
    std::string name = "/dev/shm/gpurota-specs.XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  ~SpecFolder() override { std::filesystem::remove_all(path); }
  SpecFolder(const SpecFolder&) = delete;
  SpecFolder& operator=(const SpecFolder&) = delete;

  mode_t mode_of(const std::string& name) const {
    struct stat about {};
    return ::stat((path + "/" + name).c_str(), &about) == 0 ? about.st_mode & 0777U : 0;
  }
  std::string path = "/nonexistent";
};

TEST_F(SpecFolder, IsMadeForEverybodyToRead) {
  const mode_t before = ::umask(0077);
  const auto made = make_spec_folder(path + "/cdi");
  ::umask(before);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(mode_of("cdi"), 0755U);
  EXPECT_TRUE(make_spec_folder(path + "/cdi"));
}

TEST_F(SpecFolder, IsRefusedIfWritableByOthersOrOnADisk) {
  std::filesystem::create_directory(path + "/open");
  ASSERT_EQ(::chmod((path + "/open").c_str(), 0777), 0);
  EXPECT_EQ(make_spec_folder(path + "/open").error().code, Code::kDenied);
  const auto on_proc = make_spec_folder("/proc/self/task");
  ASSERT_FALSE(on_proc);
  EXPECT_THAT(on_proc.error().message, HasSubstr("name a folder in memory"));
}

TEST_F(SpecFolder, ASpecIsForEverybodyOrForOneUser) {
  if (!write_spec(path + "/tried.json", "{}", 4711)) GTEST_SKIP() << "no access lists in /dev/shm";
  const mode_t before = ::umask(0077);
  ASSERT_TRUE(write_spec(path + "/gpu.json", "{}", {}));
  const auto own = write_spec(path + "/own.json", "{}", ::geteuid());
  const auto others = write_spec(path + "/lease.json", "{}", 4711);
  ::umask(before);
  EXPECT_EQ(mode_of("gpu.json"), 0644U);
  ASSERT_TRUE(own);
  EXPECT_EQ(mode_of("own.json"), 0600U);
  ASSERT_TRUE(others) << others.error().message;
  EXPECT_EQ(mode_of("lease.json"), 0640U);  // with an ACL, the group bits are the mask
  acl_t list = ::acl_get_file((path + "/lease.json").c_str(), ACL_TYPE_ACCESS);
  char* const text = ::acl_to_text(list, nullptr);
  EXPECT_THAT(std::string(text), HasSubstr("user:4711:r--"));
  EXPECT_THAT(std::string(text), HasSubstr("group::---"));
  EXPECT_THAT(std::string(text), HasSubstr("other::---"));
  ::acl_free(text);
  ::acl_free(list);
}

TEST_F(SpecFolder, ReadsSpecsWithThePrefixAndRemovesOldDrafts) {
  testing::write_file(path + "/ours-gpu.json", "one");
  testing::write_file(path + "/ours-lease_L1.json.new", "half");
  testing::write_file(path + "/nvidia.json.new", "theirs");
  const auto specs = read_specs(path, "ours-");
  ASSERT_TRUE(specs);
  EXPECT_EQ(*specs, (std::map<std::string, std::string>{{"ours-gpu.json", "one"}}));
  EXPECT_FALSE(std::filesystem::exists(path + "/ours-lease_L1.json.new"));
  EXPECT_TRUE(std::filesystem::exists(path + "/nvidia.json.new"));
  EXPECT_TRUE(read_specs(path + "/nowhere", "ours-")->empty());
}

}  // namespace
}  // namespace gpurota::sys
