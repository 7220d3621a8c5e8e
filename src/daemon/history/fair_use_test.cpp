#include "daemon/history/fair_use.h"

#include "daemon/gpus/fake_world_test.h"
#include "store/sqlite_store.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1001, kBob = 1002;

struct TwoGroups final : UserGroups {
  std::optional<std::vector<std::string>> group_names(uid_t uid) override {
    if (uid == kAlice) return std::vector<std::string>{"alice", "staff"};
    return std::vector<std::string>{"bob"};
  }
};

class FairUseTest : public FakeWorldTest {
 protected:
  // A daemon on the same store.
  struct Life {
    explicit Life(FairUseTest& t)
        : recorder({t.loop,
                    t.history.get(),
                    "",
                    t.config,
                    t.processes,
                    t.gpus,
                    [&t] { return t.wall(); },
                    nullptr,
                    nullptr,
                    {}}),
          use({t.loop, t.processes, recorder, t.config, t.groups, [&t] { return t.wall(); },
               [&t] { ++t.ready; }}) {
      EXPECT_TRUE(recorder.start(t.leases));
      use.start();
      t.loop.advance(100ms);
    }
    Recorder recorder;
    FairUse use;
  };

  FairUseTest() {
    config.fair_share.enabled = true;
    config.fair_share.half_life = 10h;
    processes.set_user(kAlice, "alice");
    life.emplace(*this);
  }
  WallTime wall() const {
    return std::chrono::time_point_cast<WallTime::duration>(WallTime(1000h) + (loop.now() - zero) +
                                                            set_forward);
  }
  void restart() {
    life.reset();
    life.emplace(*this);
  }
  LeaseId begin(uid_t uid, LeaseKind kind = LeaseKind::kRun) {
    const LeaseId id{++last};
    LeaseEntry& entry = leases.emplace(id, processes).first->second;
    entry.lease.id = id;
    entry.lease.uid = uid;
    entry.lease.kind = kind;
    entry.lease.since = wall();
    entry.lease.gpus = {{kGpu, std::nullopt, std::nullopt}};
    life->recorder.on_lease_change(entry, false);
    return id;
  }
  void end(LeaseId id) {
    life->use.on_lease_change(leases.at(id), true);
    life->recorder.on_lease_change(leases.at(id), true);
    leases.erase(id);
  }
  void use_it(uid_t uid, Duration time, LeaseKind kind = LeaseKind::kRun) {
    const LeaseId id = begin(uid, kind);
    loop.advance(time);
    end(id);
  }
  double hours(uid_t uid) {
    const auto share = life->use.share_of(uid);
    return share ? static_cast<double>(share->used.count()) / 3600 : -1;
  }

  const TimePoint zero = loop.now();
  std::chrono::hours set_forward{};  // the machine's clock
  std::unique_ptr<store::SqliteStore> history = std::move(*store::SqliteStore::open_in_memory());
  TwoGroups groups;
  std::map<LeaseId, LeaseEntry> leases;
  std::uint64_t last = 0;
  int ready = 0;
  std::optional<Life> life;
};

TEST_F(FairUseTest, UseDecays) {
  use_it(kAlice, 1h);
  EXPECT_NEAR(hours(kAlice), 0.966, 0.002) << "what is an hour old counts a little less";
  EXPECT_EQ(hours(kBob), 0);
  loop.advance(10h);
  EXPECT_NEAR(hours(kAlice), 0.483, 0.002);
}

TEST_F(FairUseTest, AClockThatIsSetForwardAYearAndBackChangesNothing) {
  use_it(kAlice, 1h);
  const double before = hours(kAlice);
  set_forward = 365 * 24h;
  loop.advance(2s);
  EXPECT_NEAR(hours(kAlice), before, 0.005);
  use_it(kBob, 1h);
  set_forward = 0h;
  loop.advance(9h);
  EXPECT_NEAR(hours(kAlice), before / 2, 0.01);
  EXPECT_NEAR(hours(kBob), 0.966 * std::exp2(-0.9), 0.01);
}

TEST_F(FairUseTest, RunningLeasesCount) {
  begin(kAlice);
  loop.advance(1h);
  EXPECT_NEAR(hours(kAlice), 0.966, 0.002);
}

TEST_F(FairUseTest, ARestartChangesNothing) {
  for (int i = 0; i < 200; ++i) use_it(kAlice, 1min);
  use_it(kBob, 30min);
  const LeaseId open = begin(kBob);
  loop.advance(1h);
  const double alice = hours(kAlice), bob = hours(kBob);
  EXPECT_GT(alice, 2);
  EXPECT_GT(bob, 1);
  restart();
  loop.advance(1s);
  EXPECT_NEAR(hours(kAlice), alice, 0.005);
  EXPECT_NEAR(hours(kBob), bob, 0.005);
  end(open);
  loop.advance(2s);
  EXPECT_NEAR(hours(kBob), bob, 0.005) << "its end is no more use";
  restart();
  loop.advance(1s);
  EXPECT_NEAR(hours(kBob), bob, 0.005);
}

TEST_F(FairUseTest, OrderIsThatOfArrivalUntilUseIsRead) {
  use_it(kAlice, 1h);
  life->recorder.flush();
  ready = 0;
  config.fair_share.half_life = 20h;
  life->use.start();
  EXPECT_FALSE(life->use.share_of(kAlice));
  loop.advance(100ms);
  EXPECT_TRUE(life->use.share_of(kAlice));
  EXPECT_EQ(ready, 1);
  config.fair_share.enabled = false;
  life->use.start();
  EXPECT_FALSE(life->use.share_of(kAlice));
}

TEST_F(FairUseTest, FillersCountOnlyIfTheSiteSaysSo) {
  use_it(kAlice, 1h, LeaseKind::kFiller);
  EXPECT_EQ(hours(kAlice), 0);
  config.filler.count_against_limits = true;
  life->use.start();
  loop.advance(100ms);
  EXPECT_GT(hours(kAlice), 0.9);
}

TEST_F(FairUseTest, WeightsAreOfUsersAndOfTheFirstGroupThatHasOne) {
  config.fair_share.users["alice"].weight = 3;
  config.fair_share.users["1002"].weight = 4;
  config.fair_share.groups["staff"].weight = 2;
  life->use.start();
  use_it(kAlice, 1h);
  const auto alice = life->use.share_of(kAlice);
  EXPECT_EQ(alice->weight, 3);
  EXPECT_EQ(alice->group, "staff");
  EXPECT_EQ(alice->group_weight, 2);
  EXPECT_EQ(alice->group_used, alice->used);
  const auto bob = life->use.share_of(kBob);
  EXPECT_EQ(bob->weight, 4);
  EXPECT_EQ(bob->group, "");
}

}  // namespace
}  // namespace gpurota::daemon
