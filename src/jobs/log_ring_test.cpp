#include "jobs/log_ring.h"

#include "jobs/log_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpurota::jobs {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A disk that fails after this many bytes, or crashes there, so that everything fails from then on.
struct Disk {
  std::uint64_t left = UINT64_MAX;
};

class FakeFile final : public LogFile {
 public:
  explicit FakeFile(Disk& disk) : disk_(disk) {}

  Result<std::uint64_t> size() override { return text.size(); }
  Result<std::string> read(std::uint64_t offset, std::size_t bytes) override {
    const std::string part = offset < text.size() ? text.substr(offset, bytes) : "";
    bytes_read += part.size();
    return part;
  }
  Result<void> append(std::string_view more) override {
    const auto part = more.substr(0, std::min<std::uint64_t>(disk_.left, more.size()));
    text += part;
    most = std::max(most, text.size());
    disk_.left -= disk_.left == UINT64_MAX ? 0 : part.size();
    if (part.size() == more.size()) return {};
    return fail(Code::kIo, "no space left");
  }
  Result<void> make_empty() override {
    if (disk_.left == 0) return fail(Code::kIo, "no space left");
    text.clear();
    return {};
  }

  std::string text;
  std::size_t most = 0;
  std::size_t bytes_read = 0;

 private:
  Disk& disk_;
};

struct Files {
  Disk disk;
  FakeFile a{disk}, b{disk};
  std::string read(std::size_t most = SIZE_MAX) { return read_log(a, b, most)->text; }
};

constexpr Bytes kBound = LogRing::kLeastBound;

TEST(LogRing, KeepsShortOutputUnchanged) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write("one\ntw"));
  ASSERT_TRUE(ring.write("o\n"));
  EXPECT_EQ(files.read(), "one\ntwo\n");
}

TEST(LogRing, NeverGrowsPastItsBoundAndKeepsTheNewestHalf) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  std::string all;
  for (int i = 0; i < 5'000; ++i) {
    const std::string line = fmt::format("line {}\n", i);
    all += line;
    ASSERT_TRUE(ring.write(line));
    ASSERT_LE(files.a.text.size() + files.b.text.size(), kBound.count());
  }
  EXPECT_LE(files.a.most, kBound.count() / 2);
  const std::string kept = files.read();
  EXPECT_TRUE(all.ends_with(kept));
  EXPECT_GE(kept.size(), kBound.count() / 2 - 100);
  EXPECT_THAT(kept, StartsWith("line "));
}

TEST(LogRing, CutsALineThatIsLongerThanAFile) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write(std::string(100'000, 'x')));
  ASSERT_TRUE(ring.write("\nend\n"));
  EXPECT_LE(files.a.most, kBound.count() / 2);
  EXPECT_LE(files.b.most, kBound.count() / 2);
  EXPECT_TRUE(files.read().ends_with("x\nend\n"));
}

TEST(LogRing, ContinuesAfterAnEarlierWriter) {
  Files files;
  for (int writer = 0; writer < 50; ++writer) {
    LogRing ring(files.a, files.b, kBound);
    ASSERT_TRUE(ring.open());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(ring.write(fmt::format("{} {}\n", writer, i)));
  }
  const std::string kept = files.read();
  EXPECT_TRUE(kept.ends_with("49 18\n49 19\n"));
  EXPECT_LE(files.a.text.size() + files.b.text.size(), kBound.count());
}

TEST(LogRing, FinishesALineThatACrashCutOff) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write("half a li"));
  LogRing next(files.a, files.b, kBound);
  ASSERT_TRUE(next.open());
  ASSERT_TRUE(next.write("new\n"));
  EXPECT_EQ(files.read(), "half a li\nnew\n");
}

TEST(LogRing, ReportsHowMuchWasLostOnAFullDisk) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write("before\n"));
  files.disk.left = 3;
  EXPECT_FALSE(ring.write("lost line\n"));
  EXPECT_FALSE(ring.write("another\n"));
  EXPECT_EQ(ring.dropped(), 18U);
  files.disk.left = UINT64_MAX;
  ASSERT_TRUE(ring.write("after\n"));
  EXPECT_EQ(files.read(),
            "before\nlos\n[gpurota: 18 bytes of output could not be written]\nafter\n");
  EXPECT_EQ(ring.dropped(), 0U);
}

TEST(LogRing, ReadsTheEndFromAWholeLineOn) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write("first\nsecond\nthird\n"));
  EXPECT_EQ(files.read(8), "third\n");
  EXPECT_EQ(files.read(6), "third\n");
  EXPECT_EQ(files.read(13), "second\nthird\n");
}

TEST(LogRing, ForeignFilesCountAsEmpty) {
  Files files;
  files.a.text = "something else altogether, and longer than a header would be\n";
  EXPECT_EQ(files.read(), "");
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.open());
  ASSERT_TRUE(ring.write("mine\n"));
  EXPECT_EQ(files.read(), "mine\n");
  EXPECT_THAT(files.a.text, Not(HasSubstr("altogether")));
}

// Crashes at each byte that is written: the log then has whole lines, in order, and the most recent
// ones.
TEST(LogRing, HasWholeLinesAfterACrashAtAnyPoint) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    Files files;
    int line = 0;
    for (int life = 0; life < 4; ++life) {
      files.disk.left = random() % 9'000;
      LogRing ring(files.a, files.b, kBound);
      ASSERT_TRUE(ring.open());
      while (true) {
        const std::string text =
            fmt::format("{:06} {}\n", line++, std::string(random() % 120, 'y'));
        if (!ring.write(text)) break;
      }
      ASSERT_LE(files.a.text.size() + files.b.text.size(), kBound.count()) << "seed " << seed;
    }
    files.disk.left = UINT64_MAX;
    LogRing ring(files.a, files.b, kBound);
    ASSERT_TRUE(ring.open());
    ASSERT_TRUE(ring.write("the end\n"));
    const std::string kept = files.read();
    ASSERT_TRUE(kept.ends_with("\nthe end\n") || kept == "the end\n") << "seed " << seed;
    int last = -1;
    for (std::size_t at = 0; at < kept.size(); at = kept.find('\n', at) + 1) {
      if (kept.find_first_not_of("0123456789", at) != at + 6) continue;  // cut short by a crash
      const int number = std::atoi(kept.substr(at, 6).c_str());
      ASSERT_GT(number, last) << "seed " << seed;
      last = number;
    }
  }
}

TEST(LogReader, FollowsTheLogOverEveryRotation) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  LogCursor at;
  std::string seen, written;
  for (int i = 0; i < 500; ++i) {
    const std::string line = fmt::format("line {}\n", i);
    ASSERT_TRUE(ring.write(line));
    written += line;
    if (i % 7 != 0) continue;
    const auto part = read_log_from(files.a, files.b, at, i % 2 == 0 ? 5 : SIZE_MAX);
    ASSERT_TRUE(part);
    EXPECT_FALSE(part->missed);
    seen += part->text;
    at = part->next;
  }
  seen += read_log_from(files.a, files.b, at, SIZE_MAX)->text;
  EXPECT_EQ(seen, written);
}

TEST(LogReader, ReportsMissedOutputAndContinues) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.write("first\n"));
  const LogCursor at = read_log(files.a, files.b, SIZE_MAX)->next;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(ring.write(fmt::format("line {}\n", i)));
  const auto part = read_log_from(files.a, files.b, at, SIZE_MAX);
  EXPECT_TRUE(part->missed);
  EXPECT_EQ(part->text, files.read());
  EXPECT_TRUE(read_log_from(files.a, files.b, part->next, SIZE_MAX)->text.empty());
}

TEST(LogReader, ContinuesWhereTheLastReadEnded) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.write("one\ntwo\n"));
  const auto end = read_log(files.a, files.b, 4);
  EXPECT_EQ(end->text, "two\n");
  ASSERT_TRUE(ring.write("three\n"));
  EXPECT_EQ(read_log_from(files.a, files.b, end->next, SIZE_MAX)->text, "three\n");
}

TEST(LogReader, ReadsNoMoreOfALargeLogThanItIsAskedFor) {
  Files files;
  LogRing ring(files.a, files.b, kMiB);
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(ring.write(fmt::format("line {:10}\n", i)));
  files.a.bytes_read = files.b.bytes_read = 0;
  EXPECT_EQ(files.read(32), "line      19998\nline      19999\n");
  EXPECT_LT(files.a.bytes_read + files.b.bytes_read, 200u);
}

TEST(LogReader, ReadsTheEndAcrossBothFiles) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(ring.write(fmt::format("line {}\n", i)));
  const std::string all = files.read();
  for (std::size_t most = 0; most <= all.size() + 1; ++most) {
    const std::string part = files.read(most);
    EXPECT_LE(part.size(), most);
    EXPECT_TRUE(all.ends_with(part)) << most;
    const bool whole_lines =
        part.size() == all.size() || part.empty() || all[all.size() - part.size() - 1] == '\n';
    EXPECT_TRUE(whole_lines || part.find('\n') == std::string::npos) << most;
  }
}

TEST(LogReader, StartsFromTheBeginningOfAnotherLog) {
  Files files, other;
  LogRing ring(files.a, files.b, kBound), fresh(other.a, other.b, kBound);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(ring.write(fmt::format("line {}\n", i)));
  ASSERT_TRUE(fresh.write("anew\n"));
  const auto part =
      read_log_from(other.a, other.b, read_log(files.a, files.b, SIZE_MAX)->next, SIZE_MAX);
  EXPECT_EQ(part->text, "anew\n");
  EXPECT_FALSE(part->missed);
}

TEST(LogReader, NeverCutsACharacter) {
  Files files;
  LogRing ring(files.a, files.b, kBound);
  ASSERT_TRUE(ring.write("a\u20ac\xe2\x82"));
  auto part = read_log_from(files.a, files.b, {}, 3);
  EXPECT_EQ(part->text, "a");
  part = read_log_from(files.a, files.b, part->next, SIZE_MAX);
  EXPECT_EQ(part->text, "\u20ac");
  ASSERT_TRUE(ring.write("\xac."));
  EXPECT_EQ(read_log_from(files.a, files.b, part->next, SIZE_MAX)->text, "\u20ac.");
}

TEST(LogCursorText, ParsesItsOwnFormatOnly) {
  EXPECT_EQ(parse_log_cursor(to_string(LogCursor{3, 1200})), (LogCursor{3, 1200}));
  for (const char* text : {"", ":", "1", "1:", ":1", "x:1", "1:-1", "1:1 "}) {
    EXPECT_FALSE(parse_log_cursor(text)) << text;
  }
}

}  // namespace
}  // namespace gpurota::jobs
