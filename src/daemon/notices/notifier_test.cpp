// Which notices are sent by which channel, how many at a time, and how failures are logged.
#include "daemon/notices/notifier.h"

#include "base/log.h"
#include "daemon/gpus/fake_world_test.h"
#include "testing/fake_programs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NotifierTest : public FakeWorldTest {
 protected:
  NotifierTest() {
    processes.set_user(1000, "alice");
    processes.set_user(0, "root");
    config.notify.command = {"/bin/notify"};
    log::set_sink(
        [this](log::Level, const std::string& line, const log::Fields&) { lines.push_back(line); });
  }
  ~NotifierTest() override { log::set_sink({}); }

  void send(uid_t user, NoticeKind kind = NoticeKind::kReleased) {
    notifier.on_notice({.kind = kind, .to = user, .text = "text", .reason = "why", .by = 0});
  }

  testing::FakePrograms programs;
  Notifier notifier{{loop, &programs, processes, config, [] { return WallTime(1h); }}};
  std::vector<std::string> lines;
};

TEST_F(NotifierTest, NoticeNamesRecipientActorAndReason) {
  send(1000);
  ASSERT_THAT(programs.begun, SizeIs(1));
  EXPECT_THAT(programs.begun[0].input, HasSubstr("\"user\":\"alice\""));
  EXPECT_THAT(programs.begun[0].input, HasSubstr("\"reason\":\"why\",\"by\":\"root\""));
}

TEST_F(NotifierTest, NoticesThatTheSiteDoesNotWantAreNotSent) {
  config.notify.events = {NoticeKind::kFinding};
  send(1000);
  EXPECT_THAT(programs.begun, IsEmpty());
  send(1000, NoticeKind::kFinding);
  EXPECT_THAT(programs.begun, SizeIs(1));
  config.notify.command.clear();
  send(1000, NoticeKind::kFinding);
  EXPECT_THAT(programs.begun, SizeIs(1)) << "no channel";
}

TEST_F(NotifierTest, AFewRunAtOnceAndTheOthersFollow) {
  for (uid_t user = 1; user <= 5; ++user) send(user);
  EXPECT_THAT(programs.running, SizeIs(Notifier::kMostAtOnce));
  programs.end();
  EXPECT_THAT(programs.running, SizeIs(Notifier::kMostAtOnce));
  while (!programs.running.empty()) programs.end();
  EXPECT_THAT(programs.begun, SizeIs(5));
}

TEST_F(NotifierTest, HangingProgramBlocksOnlyItsOwnChannel) {
  config.notify.mail = true;
  for (int i = 0; i < 3; ++i) send(1000);
  EXPECT_THAT(programs.running, SizeIs(2 * Notifier::kMostAtOnce));
}

TEST_F(NotifierTest, FullQueueDropsANoticeOfTheUserWithMost) {
  for (uid_t user = 1; user <= 5; ++user) {
    for (int i = 0; i < 20; ++i) send(user);
  }
  send(1000);
  while (!programs.running.empty()) programs.end();
  EXPECT_THAT(programs.begun, SizeIs(Notifier::kMostAtOnce + Notifier::kMostWaiting));
  const auto& begun = programs.begun;
  EXPECT_TRUE(std::any_of(begun.begin(), begun.end(), [](const auto& program) {
    return program.input.find("\"user\":\"alice\"") != std::string::npos;
  }));
}

TEST_F(NotifierTest, TheQueueIsBoundedAndTheLogSaysOnceThatSomeAreDropped) {
  for (uid_t user = 1; user <= 500; ++user) send(user);
  EXPECT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("dropping some"));
  while (!programs.running.empty()) programs.end();
  EXPECT_THAT(programs.begun, SizeIs(Notifier::kMostAtOnce + Notifier::kMostWaiting));
  EXPECT_THAT(lines.back(), HasSubstr(fmt::format("dropped={}", 500 - 2 - 64)));
}

TEST_F(NotifierTest, ThousandEndsOfOneUserGiveAFewNotices) {
  for (int i = 0; i < 1000; ++i) {
    send(1000);
    while (!programs.running.empty()) programs.end();
  }
  EXPECT_THAT(programs.begun, SizeIs(config.notify.most_per_hour));
  loop.advance(1h);
  while (!programs.running.empty()) programs.end();
  ASSERT_THAT(programs.begun, SizeIs(config.notify.most_per_hour + 1));
  EXPECT_THAT(programs.begun.back().input, HasSubstr("980 notices like this one"));
}

TEST_F(NotifierTest, AChannelThatFailsIsLoggedOnceThenCountedAndSoIsItsRecovery) {
  ports::ProgramEnd failed;
  failed.code = 3;
  failed.complaint = "no such \x1b user";
  for (uid_t user = 1; user <= 4; ++user) {
    send(user);
    programs.end(failed);
  }
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("exit status 3: no such \uFFFD user"));
  loop.advance(Notifier::kLogPause);
  send(5);
  programs.end(failed);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[1], HasSubstr("times=4"));
  send(6);
  programs.end();
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_THAT(lines[2], HasSubstr("failed=5"));
}

TEST_F(NotifierTest, TestNoticeReportsEachChannelAndIsBounded) {
  config.notify.mail = true;
  const Notice notice{.kind = NoticeKind::kTest, .to = 1000, .text = "a test"};
  ASSERT_TRUE(notifier.check_test(notice));
  std::vector<std::string> results;
  EXPECT_EQ(notifier.test(notice,
                          [&](Channel channel, const ports::ProgramEnd& end) {
                            results.push_back(to_string(channel) + (": " + end_text(end)));
                          }),
            2u);
  programs.end();
  ports::ProgramEnd hung;
  hung.timed_out = true;
  programs.end(hung);
  EXPECT_THAT(results, ::testing::ElementsAre("command: exit status 0",
                                              "mail: killed when its time was over"));
  for (int i = 1; i < config.notify.most_per_hour; ++i) EXPECT_TRUE(notifier.check_test(notice));
  EXPECT_EQ(notifier.check_test(notice).error().code, Code::kLimit);
  config.notify = {};
  EXPECT_EQ(notifier.check_test(notice).error().code, Code::kUnavailable);
}

TEST_F(NotifierTest, UserWithoutAMailAddressFailsTheTestNotice) {
  config.notify = {};
  config.notify.mail = true;
  processes.set_user(1001, "-bs");
  std::string result;
  notifier.test({.kind = NoticeKind::kTest, .to = 1001},
                [&](Channel, const ports::ProgramEnd& end) { result = end_text(end); });
  loop.run_until_idle();
  EXPECT_THAT(result, HasSubstr("not started: no mail can be sent to the user \"-bs\""));
  EXPECT_THAT(programs.begun, IsEmpty());
}

}  // namespace
}  // namespace gpurota::daemon
