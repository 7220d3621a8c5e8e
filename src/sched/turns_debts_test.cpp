// Tests that a lease ends if its tenant does not carry out orders, in each way of not doing so, and
// that the lease of an honest tenant never ends for that.
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

using std::chrono::minutes;

class TurnDebtsTest : public TurnsTest {
 protected:
  // B has the turn and does not give it back; A wants it.
  void let_b_keep_its_turn() {
    add_two_that_do_not_fit();
    let_b_begin();
    done.clear();
  }
  std::vector<ReportTrouble> ends() const {
    std::vector<ReportTrouble> found = of<ReportTrouble>();
    std::erase_if(found, [](const ReportTrouble& r) { return !r.stop; });
    return found;
  }
  std::vector<ReportTrouble> warnings() const {
    std::vector<ReportTrouble> found = of<ReportTrouble>();
    std::erase_if(found, [](const ReportTrouble& r) { return !r.ends_in; });
    return found;
  }
  // Passes time by the second until a lease ends. Returns how long that took.
  Duration until_an_end(Duration most) {
    Duration passed{};
    while (ends().empty() && passed < most) pass(seconds(1)), passed += seconds(1);
    return passed;
  }
};

TEST_F(TurnDebtsTest, SilentTenantIsWarnedAtHalfTimeAndItsLeaseEndsOnce) {
  let_b_keep_its_turn();
  silent.insert(kB);
  pass(minutes(5));
  ASSERT_TRUE(ends().empty());
  pass(minutes(1));
  ASSERT_EQ(warnings().size(), 1u);
  EXPECT_EQ(warnings()[0].lease, kLeaseB);
  EXPECT_NEAR(std::chrono::duration<double>(*warnings()[0].ends_in).count(), 300, 3);
  pass(minutes(6));
  ASSERT_EQ(ends().size(), 1u) << "once";
  EXPECT_EQ(ends()[0].lease, kLeaseB);
  EXPECT_EQ(ends()[0].trouble, Trouble::kNotYielding);
}

TEST_F(TurnDebtsTest, EndlesslyBusyTenantLosesItsLease) {
  let_b_keep_its_turn();
  stuck.insert(kB);
  say(kB);
  const Duration took = until_an_end(minutes(20));
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseB);
  EXPECT_GE(took, minutes(9));
  EXPECT_LE(took, minutes(12));
}

TEST_F(TurnDebtsTest, KernelOfFiveMinutesMayEnd) {
  let_b_keep_its_turn();
  for (int i = 0; i < 5; ++i) {
    stuck.insert(kB);
    pass(minutes(5));
    stuck.erase(kB);
    say(kB);
    pass(seconds(30));
    EXPECT_GT(evicted[kB], Bytes()) << "then it gives its turn back";
    for (int s = 0; s < 600 && !holds(kLeaseB); ++s) pass(seconds(1));
  }
  EXPECT_TRUE(ends().empty()) << "what is owed is paid by each end of its work";
}

TEST_F(TurnDebtsTest, NothingIsOwedWhileNobodyWaits) {
  let_b_keep_its_turn();
  rest(kA);
  stuck.insert(kB);
  say(kB);
  pass(minutes(60));
  EXPECT_TRUE(ends().empty());
}

TEST_F(TurnDebtsTest, SuspendedMachineEndsNoLease) {
  let_b_keep_its_turn();
  stuck.insert(kB);
  say(kB);
  pass(minutes(2));
  for (int i = 0; i < 10; ++i) {
    now += std::chrono::hours(1);  // no event comes in
    send(Tick{});
  }
  EXPECT_TRUE(ends().empty());
  stuck.erase(kB);
  say(kB);
  pass(seconds(30));
  EXPECT_GT(evicted[kB], Bytes());
}

TEST_F(TurnDebtsTest, AStoppedProcessOwesNoTimeForASuspensionOfTheMachine) {
  let_b_keep_its_turn();
  send(Reachable{kB, false});
  pass(minutes(2));
  now += std::chrono::hours(10);
  send(Tick{});
  EXPECT_TRUE(ends().empty());
  until_an_end(minutes(20));
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].trouble, Trouble::kUnreachable);
}

TEST_F(TurnDebtsTest, LeaseEndsIfAllItsEvictionsFail) {
  add_two_that_do_not_fit();
  failing.insert(kB);
  work(kA);
  const Duration took = until_an_end(minutes(60));
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseB);
  EXPECT_GE(took, minutes(9));
}

TEST_F(TurnDebtsTest, LeaseEndsIfAllItsEvictionsAreGivenBack) {
  add_two_that_do_not_fit();
  hollow.insert(kB);
  work(kA);
  until_an_end(minutes(60));
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseB);
}

TEST_F(TurnDebtsTest, LeaseEndsIfEvictionsFailAlsoWithTurnsBetween) {
  add_two_that_do_not_fit();
  failing.insert(kB);
  work(kB);
  work(kA);
  EXPECT_GE(until_an_end(std::chrono::hours(3)), minutes(9));
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseB);
}

TEST_F(TurnDebtsTest, FailedEvictionIsForgivenAfterASuccessfulOne) {
  add_two_that_do_not_fit();
  let_b_begin();
  for (int i = 0; i < 40; ++i) {
    failing.insert(kB);
    pass(seconds(20));
    failing.erase(kB);
    pass(seconds(60));
  }
  EXPECT_TRUE(ends().empty());
}

// Tenant A has the turn, gets room, and restores nothing.
TEST_F(TurnDebtsTest, LeaseEndsIfItsTenantNeverRestores) {
  add_two_that_do_not_fit();
  lazy.insert(kA);
  work(kA);
  pass(seconds(30));
  work(kB);
  for (int i = 0; i < 3600 && ends().empty(); ++i) {
    pass(seconds(1));
    send(Restored{kA, kGpu0, Bytes(4096), {}, false});  // a sign of life
  }
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseA);
}

TEST_F(TurnDebtsTest, ReconnectionDoesNotReduceOwedTime) {
  let_b_keep_its_turn();
  silent.insert(kB);
  TenantId last = kB;
  for (std::uint64_t i = 0; i < 40 && ends().empty(); ++i) {
    pass(seconds(25));
    const TenantId next{100 + i};
    silent.insert(next);
    send(AddTenant{next, kLeaseB, {{kGpu0, gib(70), gib(70), {}}}, true, last});
    last = next;
  }
  ASSERT_EQ(ends().size(), 1u);
  EXPECT_EQ(ends()[0].lease, kLeaseB);
}

class PatientTest : public TurnDebtsTest {
 protected:
  PatientTest() { turns.set(patient()); }
  static Settings patient() {
    Settings settings;
    settings.longest_drain = {};
    return settings;
  }
};

TEST_F(PatientTest, SiteCanWaitForEver) {
  let_b_keep_its_turn();
  silent.insert(kB);
  pass(std::chrono::hours(3));
  EXPECT_TRUE(ends().empty());
  EXPECT_TRUE(warnings().empty());
}

}  // namespace
}  // namespace gpurota::sched
