#include "config/loaded.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigFiles : public ::testing::Test {
 protected:
  ConfigFiles() { ::mkdir(folder.c_str(), 0700); }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }

  testing::TempDir dir;
  const std::string file = dir.file("gpurota.toml");
  const std::string folder = drop_in_folder(file);
};

TEST_F(ConfigFiles, AMissingFileIsTheDefaultsUnlessItWasNamed) {
  EXPECT_EQ(load("/nonexistent/gpurota.toml", false).config, Config{});
  EXPECT_EQ(load("/nonexistent/gpurota.toml", false).mistake_count(), 0u);
  EXPECT_EQ(mistakes_text(load("/nonexistent/gpurota.toml", true)),
            "/nonexistent/gpurota.toml: cannot open it: No such file or directory");
}

TEST_F(ConfigFiles, PathThatIsNotARegularFileIsRefused) {
  EXPECT_THAT(mistakes_text(load("/dev/zero", true)), HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(mistakes_text(load("/", true)), HasSubstr("cannot read it"));
  EXPECT_EQ(load("/dev/null", true).mistake_count(), 0u);
}

TEST_F(ConfigFiles, PipeInPlaceOfAFileDoesNotBlock) {
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(mistakes_text(load(file, true)), HasSubstr("it is a pipe"));
}

TEST_F(ConfigFiles, DropInsAreReadInTheOrderOfTheirNamesAndTheLastCountsKeyByKey) {
  write(file, "grace = \"1s\"\nprivacy = \"open\"\n[limits]\ngpus = 1\nmemory = \"8G\"\n");
  write(folder + "/20-b.toml", "grace = \"3s\"\n[limits]\ngpus = 3\n");
  write(folder + "/10-a.toml", "\ngrace = \"2s\"\n[limits]\ngpus = 2\nhours = 5\n");
  write(folder + "/.hidden.toml", "no toml");
  write(folder + "/30-c.conf", "no toml");
  const Loaded loaded = load(file, true);
  ASSERT_EQ(mistakes_text(loaded), "");
  EXPECT_THAT(loaded.files, ElementsAre(file, folder + "/10-a.toml", folder + "/20-b.toml"));
  EXPECT_EQ(loaded.config.grace.count(), 3000);
  EXPECT_EQ(loaded.config.privacy, Privacy::kOpen);
  EXPECT_EQ(loaded.config.limits.everyone.gpus, 3);
  EXPECT_EQ(loaded.config.limits.everyone.memory, gib(8));
  EXPECT_EQ(loaded.config.limits.everyone.hours, 5);
  EXPECT_EQ(to_string(loaded.place_of("grace")), folder + "/20-b.toml:1");
  EXPECT_EQ(to_string(loaded.place_of("limits.hours")), folder + "/10-a.toml:5");
  EXPECT_EQ(to_string(loaded.place_of("limits.memory")), file + ":5");
  EXPECT_EQ(loaded.place_of("watch.unused"), Place{});
}

TEST_F(ConfigFiles, AListOfALaterFileReplacesTheEarlierOne) {
  write(file,
        "[automatic]\nusers = [\"a\", \"b\"]\n[[watch.ignore]]\nuid = 1\n[[watch.ignore]]\nuid = "
        "2\n");
  write(folder + "/a.toml",
        "[automatic]\nusers = [\"c\"]\n[[watch.ignore]]\nexecutable = \"/x\"\n");
  const Loaded loaded = load(file, true);
  EXPECT_THAT(loaded.config.automatic.users, ElementsAre("c"));
  EXPECT_THAT(loaded.config.watch.ignore, ElementsAre(WatchIgnore{std::nullopt, "/x"}));
}

TEST_F(ConfigFiles, ADropInNeedsNoMainFile) {
  write(folder + "/a.toml", "grace = \"9s\"\n");
  EXPECT_EQ(load(file, false).config.grace.count(), 9000);
}

TEST_F(ConfigFiles, MistakesOfAllFilesAreReportedWithTheirFile) {
  write(file, "grace = 5\n");
  write(folder + "/a.toml", "privacy = open\n");
  write(folder + "/b.toml", "watch_period = \"2\"\n");
  ::mkdir((folder + "/c.toml").c_str(), 0700);
  const Loaded loaded = load(file, true);
  ASSERT_EQ(loaded.mistakes.size(), 4u);
  EXPECT_EQ(to_string(loaded.mistakes[0]), folder + "/c.toml: cannot read it: Is a directory");
  EXPECT_THAT(to_string(loaded.mistakes[1]), HasSubstr(file + ":1: grace: 5 has no unit"));
  EXPECT_THAT(to_string(loaded.mistakes[2]), HasSubstr("a.toml:1: privacy: text needs quotes"));
  EXPECT_THAT(to_string(loaded.mistakes[3]), HasSubstr("b.toml:1: watch_period: '2' is not a"));
}

TEST_F(ConfigFiles, TheNumberAndTheSizeOfTheFilesAreBounded) {
  for (std::size_t i = 0; i <= kMostDropIns; ++i) {
    write(folder + "/" + std::to_string(i) + ".toml", "");
  }
  EXPECT_THAT(mistakes_text(load(file, false)), HasSubstr("more than 64 files"));
  ::unlink((folder + "/0.toml").c_str());
  EXPECT_EQ(load(file, false).mistake_count(), 0u);
  const std::string comment = "#" + std::string(10000, 'x') + "\n";
  std::string half;
  while (half.size() < kMostBytes / 2) half += comment;
  write(folder + "/1.toml", half);
  EXPECT_EQ(load(file, false).mistake_count(), 0u);
  write(folder + "/2.toml", half);
  EXPECT_THAT(mistakes_text(load(file, false)), HasSubstr("larger than 1 MiB"));
}

TEST_F(ConfigFiles, UnreadableFileIsReported) {
  write(file, "");
  ::chmod(file.c_str(), 0);
  ::chmod(dir.path().c_str(), 0755);
  const uid_t user = ::geteuid();
  ASSERT_EQ(::seteuid(user == 0 ? 65534 : user), 0);  // root reads everything
  const std::string mistakes = mistakes_text(load(file, true));
  ASSERT_EQ(::seteuid(user), 0);
  EXPECT_THAT(mistakes, HasSubstr("Permission denied: only its owner"));
}

}  // namespace
}  // namespace gpurota::config
