// The sentences that users read.
#include "daemon/notices/notice_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow = WallTime(12h);  // of 1970-01-01, in UTC

class NoticeTextTest : public ::testing::Test {
 protected:
  NoticeTextTest() {
    (void)::setenv("TZ", "UTC", 1);
    ::tzset();
    lease.id = LeaseId{17};
    lease.gpus = {{GpuUuid{"a"}, gib(16), {}}, {GpuUuid{"b"}, gib(16), {}}};
  }
  std::string changed(const Lease& now, const std::string& reason = "") const {
    return changed_text(lease, now, "root (administrator)", reason, kNow);
  }

  Lease lease;
};

TEST_F(NoticeTextTest, EndingSoonNamesTheCommandThatPostponesTheEnd) {
  EXPECT_EQ(ends_soon_text(LeaseId{17}, 299990ms),
            "L17 ends in 5 minutes; to keep it: gpurota update L17 --for 2h");
  EXPECT_THAT(ends_soon_text(LeaseId{17}, 60s), HasSubstr("ends in 1 minute;"));
  EXPECT_THAT(ends_soon_text(LeaseId{17}, 2s), HasSubstr("ends in 2 seconds;"));
  EXPECT_THAT(ends_soon_text(LeaseId{17}, 1s), HasSubstr("ends in 1 second;"));
  EXPECT_THAT(ends_soon_text(LeaseId{17}, 2h), HasSubstr("ends in 2 h;"));
}

TEST_F(NoticeTextTest, ChangeNamesNewValueUserAndReason) {
  Lease now = lease;
  now.ends = kNow + 2h + 5min;
  EXPECT_EQ(changed(now, "maintenance"),
            "L17 now ends at 14:05: root (administrator) changed its timeout (\"maintenance\")");
  now.ends = kNow + 24h;
  EXPECT_EQ(changed(now),
            "L17 now ends at 1970-01-02 12:00: root (administrator) changed its timeout");
}

TEST_F(NoticeTextTest, SeveralChangesAreOneSentence) {
  Lease now = lease;
  now.ends = kNow + 1h;
  for (LeaseGpu& gpu : now.gpus) gpu.limit = gib(8);
  now.priority = -10;
  EXPECT_EQ(changed(now),
            "L17 now ends at 13:00, has at most 8 GiB of each GPU and has priority -10: root "
            "(administrator) changed its timeout, memory limit and priority");
}

TEST_F(NoticeTextTest, ChangeOfTheLatencyNamesTheClass) {
  Lease now = lease;
  now.latency = LatencyClass::kInteractive;
  EXPECT_EQ(changed(now), "L17 now is interactive: root (administrator) changed its latency class");
}

TEST_F(NoticeTextTest, NoChangeGivesNoText) { EXPECT_EQ(changed(lease, "for fun"), ""); }

TEST_F(NoticeTextTest, UserTextCannotControlATerminal) {
  Lease now = lease;
  now.priority = 1;
  EXPECT_THAT(changed(now, "\x1b[31m\nred"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(changed(now, "\x1b[31m\nred"), Not(HasSubstr("\n")));
  EXPECT_THAT(said_text("\x1b[31m\nred"), Not(HasSubstr("\x1b")));
  EXPECT_EQ(said_text(""), "");
}

TEST_F(NoticeTextTest, EndIsASentenceForEveryReason) {
  EXPECT_EQ(ended_text(LeaseId{17}, "it was released by root (administrator): \"new fan\""),
            "L17 was released by root (administrator): \"new fan\"");
  EXPECT_EQ(ended_text(LeaseId{17}, "its time limit is over"),
            "L17 has ended: its time limit is over");
  EXPECT_EQ(cancelled_text(RequestId{7}, "it was cancelled by root (administrator)"),
            "your request R7 was cancelled by root (administrator)");
}

TEST_F(NoticeTextTest, TheEndOfAJobNamesTheCommandThatShowsMore) {
  EXPECT_EQ(job_end_text(NoticeKind::kJobFailed, "web", "exit status 3"),
            "your job web has failed: exit status 3 (gpurota job logs web)");
  EXPECT_EQ(job_end_text(NoticeKind::kJobFinished, "web", ""), "your job web has finished");
  EXPECT_EQ(job_end_text(NoticeKind::kJobCancelled, "web", "db was removed"),
            "your job web was cancelled: db was removed (gpurota job show web)");
}

TEST_F(NoticeTextTest, EachUserInAFindingReadsASentenceOfTheirOwn) {
  FoundUse found{.gpu = "GPU 1",
                 .lease = LeaseId{17},
                 .owner = "gu_alice",
                 .user = "gu_bob",
                 .pids = {32459},
                 .processes = 1,
                 .used = gib(3)};
  EXPECT_EQ(victim_text(found), "gu_bob's process 32459 uses GPU 1, which is yours (L17): 3 GiB");
  EXPECT_EQ(culprit_text(found),
            "your process 32459 uses GPU 1, which gu_alice has (L17): please stop it");
  found.pids = {1, 2};
  found.processes = 2;
  EXPECT_EQ(victim_text(found), "gu_bob's processes 1, 2 use GPU 1, which is yours (L17): 3 GiB");
  EXPECT_EQ(culprit_text(found),
            "your processes 1, 2 use GPU 1, which gu_alice has (L17): please stop them");
  found.kind = watch::FindingKind::kUnreservedUse;
  EXPECT_EQ(
      culprit_text(found),
      "your processes 1, 2 use GPU 1 without a lease: 3 GiB; start your programs with 'gpurota "
      "run'");
}

TEST_F(NoticeTextTest, ProcessesThatAreNotForTheReaderAreLeftOut) {
  const FoundUse found{
      .gpu = "GPU 1", .lease = LeaseId{17}, .user = "gu_bob", .processes = 2, .used = gib(3)};
  EXPECT_EQ(victim_text(found), "gu_bob uses GPU 1, which is yours (L17): 3 GiB");
  const FoundUse hidden{.gpu = "GPU 1", .lease = LeaseId{17}, .used = gib(3)};
  EXPECT_THAT(victim_text(hidden), HasSubstr("somebody hidden uses GPU 1"));
}

TEST(NoticeText, ActionOnAJobOrAFillerNamesUserAndReason) {
  EXPECT_EQ(program_text("root (administrator)", "stopped", "job", "web", "new fan"),
            "root (administrator) stopped your job web: \"new fan\"");
  EXPECT_EQ(program_text("root (administrator)", "paused", "filler", "fold", ""),
            "root (administrator) paused your filler fold");
}

}  // namespace
}  // namespace gpurota::daemon
