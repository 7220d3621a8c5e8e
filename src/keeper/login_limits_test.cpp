#include "keeper/login_limits.h"

#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace gpurota::keeper {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const LoginUser kAlice{"alice", 1000, {1000, 50}, {"alice", "gpu"}};
const LoginUser kRoot{"root", 0, {0}, {"root"}};

std::vector<LoginLimit> limits(const std::string& text, const LoginUser& user = kAlice) {
  return parse_login_limits({text}, user);
}
LoginLimit both(int resource, rlim_t value) { return {resource, value, value}; }

TEST(LoginLimits, ParsesALineOfLimits) {
  EXPECT_THAT(limits("# nothing\n\nalice soft nofile 4096\nalice hard nofile 8192 # files\n"),
              ElementsAre(LoginLimit{RLIMIT_NOFILE, 4096, 8192}));
  EXPECT_THAT(limits("alice\t-\tmemlock  unlimited\r\n"),
              ElementsAre(both(RLIMIT_MEMLOCK, RLIM_INFINITY)));
  EXPECT_THAT(limits("bob - nofile 1\n@staff - nofile 2"), IsEmpty());
}

TEST(LoginLimits, ConvertsUnitsOfMemoryTimeAndNice) {
  EXPECT_THAT(limits("* - as 100"), ElementsAre(both(RLIMIT_AS, 102400)));
  EXPECT_THAT(limits("* - cpu 2"), ElementsAre(both(RLIMIT_CPU, 120)));
  EXPECT_THAT(limits("* - nice -5"), ElementsAre(both(RLIMIT_NICE, 25)));
  EXPECT_THAT(limits("* - nproc -1"), ElementsAre(both(RLIMIT_NPROC, RLIM_INFINITY)));
  EXPECT_THAT(limits("* - as 18446744073709551615"), ElementsAre(both(RLIMIT_AS, RLIM_INFINITY)));
}

TEST(LoginLimits, UserLimitsOverrideGroupLimitsAndThoseTheDefault) {
  EXPECT_THAT(limits("alice - nofile 1\n@gpu - nofile 2\n* - nofile 3"),
              ElementsAre(both(RLIMIT_NOFILE, 1)));
  EXPECT_THAT(limits("@gpu - nofile 2\n* - nofile 3"), ElementsAre(both(RLIMIT_NOFILE, 2)));
  EXPECT_THAT(limits("* - nofile 3\n* - nofile 4"), ElementsAre(both(RLIMIT_NOFILE, 4)));
  EXPECT_THAT(limits("* hard nofile 9\nalice soft nofile 5"),
              ElementsAre(LoginLimit{RLIMIT_NOFILE, 5, 9}));
}

TEST(LoginLimits, LaterFileTakesPrecedence) {
  EXPECT_THAT(parse_login_limits({"* - nofile 3", "* - nofile 4"}, kAlice),
              ElementsAre(both(RLIMIT_NOFILE, 4)));
}

TEST(LoginLimits, UsersAndGroupsAreNamedByRangesToo) {
  EXPECT_THAT(limits("1000:1999 - nofile 1"), ElementsAre(both(RLIMIT_NOFILE, 1)));
  EXPECT_THAT(limits("@:99 - nofile 2"), ElementsAre(both(RLIMIT_NOFILE, 2)));
  EXPECT_THAT(limits("1001: - nofile 3\n: - nofile 4\n1x:2 - nofile 5"), IsEmpty());
}

TEST(LoginLimits, GroupAndDefaultLimitsDoNotApplyToRoot) {
  EXPECT_THAT(limits("* - nofile 1\n@root - nofile 2", kRoot), IsEmpty());
  EXPECT_THAT(limits("root - nofile 3", kRoot), ElementsAre(both(RLIMIT_NOFILE, 3)));
}

TEST(LoginLimits, DashMeansNoLimits) { EXPECT_THAT(limits("* - nofile 1\nalice -"), IsEmpty()); }

TEST(LoginLimits, InvalidLinesAreSkipped) {
  EXPECT_THAT(limits("alice - nofile\nalice both nofile 3\nalice - files 3\nalice - nofile x\n"
                     "alice - maxlogins 3\nalice - nofile 1 2\n-\n"),
              IsEmpty());
}

TEST(LoginLimits, ASoftLimitIsNeverAboveTheHardOne) {
  const rlimit now{1024, 4096};
  const rlimit lower = merge(now, {RLIMIT_NOFILE, std::nullopt, 512});
  EXPECT_EQ(lower.rlim_cur, 512U);
  EXPECT_EQ(lower.rlim_max, 512U);
  EXPECT_EQ(merge(now, {RLIMIT_NOFILE, 99999, std::nullopt}).rlim_cur, 4096U);
}

TEST(LoginLimits, ReadsLimitFilesInOrderAndSkipsOthers) {
  gpurota::testing::TempDir dir;
  (void)::mkdir(dir.file("limits.d").c_str(), 0755);
  gpurota::testing::write_file(dir.file("limits.conf"), "one");
  gpurota::testing::write_file(dir.file("limits.d/20.conf"), "three");
  gpurota::testing::write_file(dir.file("limits.d/10.conf"), "two");
  gpurota::testing::write_file(dir.file("limits.d/10.conf.bak"), "no");
  (void)::mkfifo(dir.file("limits.d/05.conf").c_str(), 0600);
  EXPECT_THAT(read_limit_files(dir.path()), ElementsAre("one", "two", "three"));
  EXPECT_THAT(read_limit_files("/nowhere"), IsEmpty());
}

}  // namespace
}  // namespace gpurota::keeper
