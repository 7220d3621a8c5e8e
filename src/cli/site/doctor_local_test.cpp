#include "cli/site/doctor_local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

using testing::HasSubstr;

namespace gpurota::cli {
namespace {

using proto::CheckStatus;

TEST(DoctorLocal, AShellWithoutALeaseIsFine) { EXPECT_TRUE(check_shell({}, {}).empty()); }

TEST(DoctorLocal, ShellWithChangedPreloadIsReportedWithTheRemedy) {
  const auto checks = check_shell({"L12", "abc", "/opt/other.so"}, "/usr/lib/libgpurota.so");
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].status, CheckStatus::kWarning);
  EXPECT_EQ(checks[1].status, CheckStatus::kError);
  EXPECT_THAT(checks[1].summary, HasSubstr("L12"));
  EXPECT_EQ(checks[1].remedy,
            "export LD_PRELOAD=/usr/lib/libgpurota.so${LD_PRELOAD:+:$LD_PRELOAD}");
}

TEST(DoctorLocal, ShellThatLoadsTheLibraryShowsOnlyItsLease) {
  const auto checks = check_shell({"L12", "abc", "/usr/lib/libgpurota.so:/opt/other.so"}, {});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].status, CheckStatus::kWarning);
}

TEST(DoctorLocal, AnExclusiveLeaseNeedsNoLibrary) {
  EXPECT_EQ(check_shell({"L12", "", ""}, {}).size(), 1u);
}

TEST(DoctorLocal, AnotherInterposerIsAWarning) {
  const auto checks = check_shell({"", "", "/opt/other.so"}, {});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].status, CheckStatus::kWarning);
  EXPECT_THAT(*checks[0].remedy, HasSubstr("unset LD_PRELOAD"));
}

TEST(DoctorLocal, ASocketOfRootOrOfOneselfIsFine) {
  EXPECT_FALSE(check_socket_owner("/run/gpurota/control.sock", 0, 0, 1000));
  EXPECT_FALSE(check_socket_owner("/tmp/x", 1000, 1000, 1000));
  EXPECT_FALSE(check_socket_owner("/run/gpurota/control.sock", 0, {}, 1000)) << "no daemon";
}

TEST(DoctorLocal, ASocketOfAThirdUserIsAWarning) {
  const auto check = check_socket_owner("/tmp/x", 1001, 1001, 1000);
  ASSERT_TRUE(check);
  EXPECT_EQ(check->status, CheckStatus::kWarning);
  EXPECT_THAT(*check->remedy, HasSubstr("unset GPUROTA_RUNTIME_DIR"));
}

TEST(DoctorLocal, SocketOfAnotherUserThanTheDaemonIsAnError) {
  const auto check = check_socket_owner("/run/gpurota/control.sock", 1001, 0, 1000);
  ASSERT_TRUE(check);
  EXPECT_EQ(check->status, CheckStatus::kError);
}

TEST(DoctorLocal, CauseOfAFailureAtTheNextStartIsAnErrorNow) {
  const config::Loaded bad = config::parse({{"f", "[limits]\ngpus = 1\nmemry = 2\nhurs = 1\n"}});
  const auto refused = check_next_start(bad, "f", true, {});
  EXPECT_EQ(refused.status, CheckStatus::kError);
  EXPECT_THAT(refused.summary, HasSubstr("will not start: f:3: limits.memry"));
  EXPECT_THAT(refused.summary, HasSubstr("(and 1 more)"));
  const config::Loaded good = config::parse({{"f", "group = \"lab\"\n"}});
  const auto groupless = check_next_start(good, "f", false, 0);
  EXPECT_EQ(groupless.status, CheckStatus::kError);
  EXPECT_THAT(groupless.summary, HasSubstr("no group 'lab'"));
  EXPECT_EQ(check_next_start(good, "f", true, {}).status, CheckStatus::kOk);
  const auto changed = check_next_start(good, "f", true, 2);
  EXPECT_EQ(changed.status, CheckStatus::kWarning);
  EXPECT_EQ(changed.summary, "2 settings in f are not in effect yet");
}

TEST(DoctorLocal, LittleLockedMemoryIsAWarningWhereItIsNeeded) {
  EXPECT_EQ(check_locked_memory({}, true).status, CheckStatus::kOk);
  EXPECT_EQ(check_locked_memory(mib(8), false).status, CheckStatus::kOk);
  EXPECT_EQ(check_locked_memory(gib(1), true).status, CheckStatus::kOk);
  const auto check = check_locked_memory(mib(8), true);
  EXPECT_EQ(check.status, CheckStatus::kWarning);
  EXPECT_THAT(*check.remedy, HasSubstr("limits.d"));
}

constexpr const char* kMaps =
    "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)\n"
    "7f01-7f02 r-xp 00000000 08:01 13 /usr/lib/x86_64-linux-gnu/gpurota/libgpurota.so";

TEST(DoctorLocal, ALibraryThatWasReplacedIsStale) {
  EXPECT_FALSE(parse_stale_library(kMaps));
  EXPECT_FALSE(parse_stale_library(""));
  EXPECT_EQ(parse_stale_library(std::string(kMaps) + " (deleted)\n"),
            "/usr/lib/x86_64-linux-gnu/gpurota/libgpurota.so");
}

TEST(DoctorLocal, ProgramsWithAStaleLibraryAreNamed) {
  EXPECT_FALSE(check_stale_programs(std::vector<pid_t>()));
  const auto check = check_stale_programs(std::vector<pid_t>{12, 14});
  ASSERT_TRUE(check);
  EXPECT_THAT(check->summary, HasSubstr("12, 14"));
  EXPECT_THAT(*check->remedy, HasSubstr("ps -fp 12,14"));
  EXPECT_EQ(check_stale_programs(std::nullopt)->status, CheckStatus::kWarning);
}

TEST(DoctorLocal, AFreshProgramIsNotStale) {
  const auto programs = read_stale_programs(std::chrono::seconds(30));
  ASSERT_TRUE(programs);
  EXPECT_THAT(*programs, testing::Not(testing::Contains(::getpid())));
}

}  // namespace
}  // namespace gpurota::cli
