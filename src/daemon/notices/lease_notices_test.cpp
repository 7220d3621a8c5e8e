// Tests of notices about leases and requests: on the terminals of those who hold them, and by the
// channels.
#include "daemon/notices/lease_notices.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uid_t kAlice = 1000, kRoot = 0;

class LeaseNoticesTest : public FakeWorldTest, public Owners, public NoticeListener {
 protected:
  LeaseNoticesTest()
      : world(loop, store, processes, gpus, grants, config, [this] { return wall(); }),
        notices(parts()) {
    (void)::setenv("TZ", "UTC", 1);
    ::tzset();
    processes.set_user(kAlice, "alice");
    processes.set_user(kRoot, "root");
    world.on_lease = [this](const LeaseEntry& entry, bool gone) {
      notices.on_lease_change(entry, gone);
    };
    world.on_request = [this](const RequestNews& news) {
      if (news.why) notices.on_request_gone(news.request, *news.why);
    };
  }
  LeaseNotices::Parts parts() {
    return {.loop = loop,
            .processes = processes,
            .config = config,
            .gpus = gpus,
            .owners = *this,
            .listener = *this,
            .wall_clock = [this] { return wall(); }};
  }
  void tell_owner(LeaseId, const std::string& text) override { terminal.push_back(text); }
  void on_notice(const Notice& notice) override { sent.push_back(notice); }
  WallTime wall() const {
    return WallTime(12h) + std::chrono::duration_cast<std::chrono::milliseconds>(
                               loop.now().time_since_epoch() - start);
  }

  AcquireRequest request_for(std::optional<std::chrono::milliseconds> lasts) {
    AcquireRequest request;
    request.uid = kAlice;
    request.process = processes.id_of(processes.spawn({.uid = kAlice}));
    request.lasts = lasts;
    return request;
  }
  LeaseId lease(std::optional<std::chrono::milliseconds> lasts = {},
                LeaseKind kind = LeaseKind::kRun) {
    AcquireRequest request = request_for(lasts);
    request.kind = kind;
    const LeaseId id = (*world.queue.acquire(request))->lease.id;
    if (kind == LeaseKind::kReservation) return id;
    command = processes.spawn({.uid = kAlice, .parent = request.process.pid});
    EXPECT_TRUE(leases.start(id, command, false));
    return id;
  }
  void update(LeaseId id, std::chrono::milliseconds lasts, uid_t by, std::string reason = "") {
    UpdateRequest request;
    request.lasts = lasts;
    request.by = {by, std::move(reason)};
    EXPECT_TRUE(world.updates.update(id, request));
  }
  std::vector<NoticeKind> kinds() const {
    std::vector<NoticeKind> all;
    for (const Notice& notice : sent) all.push_back(notice.kind);
    return all;
  }

  const Duration start = loop.now().time_since_epoch();
  testing::MemoryStore store;
  lease::GrantBook grants;
  LeaseWorld world;
  LeaseManager& leases = world.leases;
  LeaseNotices notices;
  std::vector<std::string> terminal;
  std::vector<Notice> sent;
  pid_t command = 0;
};

TEST_F(LeaseNoticesTest, LeaseEndingByTimeIsAnnouncedTwiceOnTerminalAndOnceByChannel) {
  const LeaseId id = lease(10min);
  loop.advance(4min + 59s);
  EXPECT_THAT(terminal, IsEmpty());
  loop.advance(2s);
  EXPECT_THAT(terminal,
              ElementsAre("L1 ends in 5 minutes; to keep it: gpurota update L1 --for 2h"));
  loop.advance(4min);
  ASSERT_THAT(terminal, SizeIs(2));
  EXPECT_THAT(terminal[1], HasSubstr("L1 ends in 1 minute;"));
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, NoticeKind::kEndsSoon);
  EXPECT_EQ(sent[0].lease, id);
  EXPECT_THAT(sent[0].gpus, ElementsAre("0"));
}

TEST_F(LeaseNoticesTest, OwnerIsNotifiedOfTheBookingThatEndedALease) {
  const LeaseId id = lease();
  leases.end(id, EndCause::kBooking, "bob began to use booking R16");
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].kind, NoticeKind::kStopped);
  EXPECT_EQ(sent[0].text, "L1 ended: bob began to use booking R16");
}

TEST_F(LeaseNoticesTest, AShortLeaseIsNotAnnouncedLongBeforeItsEnd) {
  lease(3min);
  loop.advance(1min);
  EXPECT_THAT(terminal, IsEmpty());
  loop.advance(1min + 1s);
  ASSERT_THAT(terminal, SizeIs(1));
  EXPECT_THAT(terminal[0], HasSubstr("in 1 minute"));
}

TEST_F(LeaseNoticesTest, ALeaseThatIsGivenMoreTimeIsAnnouncedAgainBeforeItsNewEnd) {
  const LeaseId id = lease(10min);
  loop.advance(5min + 1s);
  update(id, 1h, kAlice);
  loop.advance(54min);
  EXPECT_THAT(terminal, SizeIs(1));
  loop.advance(1min + 1s);
  EXPECT_THAT(terminal, SizeIs(2));
  EXPECT_THAT(kinds(), ElementsAre(NoticeKind::kEndsSoon, NoticeKind::kEndsSoon));
}

TEST_F(LeaseNoticesTest, SiteChoosesHowLongBeforeTheEndToNotify) {
  config.notify.before_end = {30s};
  notices.on_config_change();
  lease(10min);
  loop.advance(9min + 29s);
  EXPECT_THAT(terminal, IsEmpty());
  loop.advance(2s);
  ASSERT_THAT(terminal, SizeIs(1));
  EXPECT_THAT(terminal[0], HasSubstr("in 30 seconds"));
}

TEST_F(LeaseNoticesTest, ChangesByAdministratorsAreReportedWithNameAndReason) {
  const LeaseId id = lease(10h);
  update(id, 2h, kRoot, "maintenance");
  EXPECT_THAT(terminal,
              ElementsAre("L1 now ends at 14:00: root (administrator) changed its timeout "
                          "(\"maintenance\")"));
  ASSERT_THAT(kinds(), ElementsAre(NoticeKind::kChanged));
  EXPECT_EQ(sent[0].to, kAlice);
  EXPECT_EQ(sent[0].by, kRoot);
  EXPECT_EQ(sent[0].reason, "maintenance");
}

TEST_F(LeaseNoticesTest, OwnersAreNotNotifiedOfTheirOwnChanges) {
  const LeaseId id = lease(10h);
  update(id, 2h, kAlice);
  leases.end(id, EndCause::kReleased, "it was released by alice", Author{kAlice});
  EXPECT_THAT(terminal, IsEmpty());
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(LeaseNoticesTest, EndByAnAdministratorGoesToChannelsOnly) {
  const LeaseId id = lease();
  leases.end(id, EndCause::kReleased, "it was released by root (administrator): \"new fan\"",
             Author{kRoot, "new fan"});
  processes.die(command);
  loop.advance(1min);
  EXPECT_THAT(terminal, IsEmpty()) << "it is told with the end";
  ASSERT_THAT(kinds(), ElementsAre(NoticeKind::kReleased));
  EXPECT_EQ(sent[0].text, "L1 was released by root (administrator): \"new fan\"");
  EXPECT_EQ(sent[0].reason, "new fan");
}

TEST_F(LeaseNoticesTest, EndByARuleOfTheSiteNamesNoUser) {
  leases.end(lease(), EndCause::kReleased, "it was reserved and not used");
  ASSERT_THAT(kinds(), ElementsAre(NoticeKind::kStopped));
  EXPECT_EQ(sent[0].by, std::nullopt);
}

TEST_F(LeaseNoticesTest, EndOfAProgramCausesNoNotice) {
  lease();
  processes.die(command);
  loop.advance(1min);
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(LeaseNoticesTest, ExpiryCausesANoticeOfItsOwn) {
  lease(10min);
  loop.advance(11min);
  EXPECT_THAT(kinds(), ElementsAre(NoticeKind::kEndsSoon, NoticeKind::kExpired));
  EXPECT_EQ(sent[1].text, "L1 has ended: its time limit is over");
}

TEST_F(LeaseNoticesTest, FillersCauseNoNotices) {
  AcquireRequest request = request_for(std::nullopt);
  request.kind = LeaseKind::kFiller;
  request.placement.memory = SizeSpec{gib(1), 0};
  const LeaseId id = (*world.queue.acquire(request))->lease.id;
  leases.end(id, EndCause::kReleased, "somebody needs its GPU");
  EXPECT_THAT(sent, IsEmpty());
}

TEST_F(LeaseNoticesTest, NoticesAreNotRepeatedAfterARestart) {
  const LeaseId id = lease(10min);
  loop.advance(6min);
  terminal.clear();
  LeaseNotices next(parts());
  next.restore(world.tables.leases);
  loop.advance(2min);
  EXPECT_THAT(terminal, IsEmpty());
  loop.advance(1min + 1s);
  EXPECT_THAT(terminal, SizeIs(2)) << "of both";
  EXPECT_TRUE(world.tables.find(id));
}

TEST_F(LeaseNoticesTest, RequestCancelledByAnAdministratorCausesANotice) {
  lease();
  AcquireRequest second = request_for(std::nullopt);
  second.ticket = "second";
  const RequestId waits = (*world.queue.enqueue(second)).entry->id;
  world.queue.leave(waits, Error{Code::kGone, 0, "it was cancelled by root (administrator)"},
                    Author{kRoot, "not today"});
  ASSERT_THAT(kinds(), ElementsAre(NoticeKind::kRequestCancelled));
  EXPECT_EQ(sent[0].text, "your request R1 was cancelled by root (administrator)");
  EXPECT_EQ(sent[0].reason, "not today");
  AcquireRequest third = request_for(std::nullopt);
  third.ticket = "third";
  world.queue.leave((*world.queue.enqueue(third)).entry->id,
                    Error{Code::kGone, 0, "its connection was closed"});
  EXPECT_THAT(sent, SizeIs(1));
}

TEST_F(LeaseNoticesTest, EndOfAJobCausesANotice) {
  notices.on_job_end(kAlice, NoticeKind::kJobFailed, "web", "exit status 1");
  notices.on_job_end(kAlice, NoticeKind::kJobFinished, "prepare", "");
  ASSERT_THAT(kinds(), ElementsAre(NoticeKind::kJobFailed, NoticeKind::kJobFinished));
  EXPECT_EQ(sent[0].to, kAlice);
  EXPECT_EQ(sent[1].text, "your job prepare has finished");
}

}  // namespace
}  // namespace gpurota::daemon
