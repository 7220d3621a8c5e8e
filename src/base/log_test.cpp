#include "base/log.h"

#include "base/fd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

namespace gpurota {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    log::set_level(log::Level::kDebug);
    log::set_sink([this](log::Level level, const std::string& line, const log::Fields&) {
      levels_.push_back(level);
      lines_.push_back(line);
    });
  }
  void TearDown() override {
    log::set_sink({});
    log::set_level(log::Level::kInfo);
  }

  std::vector<log::Level> levels_;
  std::vector<std::string> lines_;
};

TEST_F(LogTest, PutsFieldsAfterTheMessage) {
  log::warn("lease ended", {{"lease", "L12"}, {"bytes", 4096}, {"reason", std::string("killed")}});
  EXPECT_THAT(lines_, ElementsAre("lease ended lease=L12 bytes=4096 reason=killed"));
  EXPECT_THAT(levels_, ElementsAre(log::Level::kWarning));
}

TEST_F(LogTest, QuotesValuesThatWouldBeMisread) {
  log::info("m", {{"a", "two words"}, {"b", ""}, {"c", "say \"hi\""}, {"d", "x=1"}, {"e", "c:\\"}});
  EXPECT_THAT(lines_, ElementsAre(R"(m a="two words" b="" c="say \"hi\"" d="x=1" e="c:\\")"));
}

TEST_F(LogTest, AForeignValueCannotForgeALineOrDriveATerminal) {
  log::error("bad\nmessage", {{"note", "x\n<6>forged user=root\x1b[2J\xff\u202e"}});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], Not(HasSubstr("\n")));
  EXPECT_THAT(lines_[0], Not(HasSubstr("\x1b")));
  EXPECT_THAT(lines_[0], Not(HasSubstr("\xff")));
  EXPECT_THAT(lines_[0], Not(HasSubstr("\u202e")));
  EXPECT_THAT(lines_[0], HasSubstr("note=\"x\uFFFD<6>forged user=root"));
}

TEST_F(LogTest, ALongValueIsCut) {
  log::info("m", {{"v", std::string(100000, 'x')}});
  EXPECT_LT(lines_[0].size(), 1000u);
}

TEST_F(LogTest, LevelsBelowTheLeastAreDropped) {
  log::set_level(log::Level::kWarning);
  log::debug("d");
  log::info("i");
  log::warn("w");
  log::error("e");
  EXPECT_THAT(lines_, ElementsAre("w", "e"));
}

TEST_F(LogTest, LinesOfManyThreadsAllArriveWhole) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) log::info("from", {{"t", t}, {"i", i}});
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(lines_.begin(), lines_.end());
  EXPECT_EQ(lines_.size(), 1600u);
  EXPECT_EQ(std::unique(lines_.begin(), lines_.end()), lines_.end());
}

TEST(ParseLevel, KnowsItsFourNames) {
  EXPECT_EQ(*log::parse_level("debug"), log::Level::kDebug);
  EXPECT_EQ(*log::parse_level("info"), log::Level::kInfo);
  EXPECT_EQ(*log::parse_level("warning"), log::Level::kWarning);
  EXPECT_EQ(*log::parse_level("error"), log::Level::kError);
  const auto bad = log::parse_level("loud");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalid);
  EXPECT_THAT(bad.error().message, HasSubstr("debug, info, warning or error"));
}

// Logs a line with the default sink; stderr is replaced by `target` meanwhile.
void log_to(int target) {
  log::set_sink({});
  const Fd saved(::dup(STDERR_FILENO));
  ASSERT_GE(::dup2(target, STDERR_FILENO), 0);
  log::warn("memory low", {{"gpu", 0}});
  ASSERT_GE(::dup2(saved.get(), STDERR_FILENO), 0);
}

std::string read_some(int fd) {
  std::array<char, 512> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

TEST(DefaultSink, WritesTheJournalsPrefixToAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  log_to(writer.get());
  EXPECT_EQ(read_some(reader.get()), "<4>memory low gpu=0\n");
}

TEST(DefaultSink, WritesTheTimeToATerminal) {
  const Fd master(::posix_openpt(O_RDWR | O_NOCTTY));
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
    GTEST_SKIP() << "no pseudo-terminals here";
  }
  std::array<char, 128> name{};
  ASSERT_EQ(::ptsname_r(master.get(), name.data(), name.size()), 0);
  const Fd terminal(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  log_to(terminal.get());
  EXPECT_THAT(read_some(master.get()),
              MatchesRegex("[0-9][0-9]:[0-9][0-9]:[0-9][0-9] warning memory low gpu=0\r\n"));
}

}  // namespace
}  // namespace gpurota
