#include "cli/containers/container_end.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

namespace gpurota::cli {
namespace {

class ContainerEndTest : public ::testing::Test {
 protected:
  // An engine that records its arguments.
  std::vector<std::string> engine() {
    const std::string path = dir_.file("engine"), said = dir_.file("said");
    testing::write_file(path, "#!/bin/sh\nprintf '%s ' \"$@\" >" + said + "\n");
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return {path, "--root", "/r"};
  }
  std::string said() const {
    std::ostringstream text;
    text << std::ifstream(dir_.file("said")).rdbuf();
    return text.str();
  }
  testing::TempDir dir_;
};

TEST_F(ContainerEndTest, TheEngineKillsTheContainerThatItHasMade) {
  const auto end = ContainerEnd::make(engine(), "");
  ASSERT_TRUE(end) << end.error().message;
  testing::write_file((*end)->id_file(), "0123abc\n");
  (*end)->kill();
  EXPECT_EQ(said(), "--root /r kill 0123abc ");
}

TEST_F(ContainerEndTest, WithoutAContainerNothingIsKilled) {
  const auto end = ContainerEnd::make(engine(), "");
  ASSERT_TRUE(end);
  (*end)->kill();
  testing::write_file((*end)->id_file(), "--all");
  (*end)->kill();
  EXPECT_EQ(said(), "");
}

TEST_F(ContainerEndTest, IdFileOfTheUserIsReadAndKept) {
  const std::string file = dir_.file("cid");
  auto end = ContainerEnd::make(engine(), file);
  ASSERT_TRUE(end);
  EXPECT_EQ((*end)->id_file(), file);
  testing::write_file(file, "0123abc");
  (*end)->kill();
  end->reset();
  EXPECT_EQ(said(), "--root /r kill 0123abc ");
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(ContainerEndTest, ExistingIdFileIsIgnored) {
  const std::string file = dir_.file("cid");
  testing::write_file(file, "0123abc");
  const auto end = ContainerEnd::make(engine(), file);
  ASSERT_TRUE(end);
  (*end)->kill();
  EXPECT_EQ(said(), "");
}

TEST_F(ContainerEndTest, TemporaryFolderIsRemoved) {
  auto end = ContainerEnd::make({"/nowhere/engine"}, "");
  ASSERT_TRUE(end);
  const std::string file = (*end)->id_file();
  testing::write_file(file, "0a");
  (*end)->kill();  // the file names an engine that does not exist
  end->reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(file).parent_path()));
}

}  // namespace
}  // namespace gpurota::cli
