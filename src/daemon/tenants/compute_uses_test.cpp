// Programs on a GPU whose time is divided by windows, with a clock of the test's: what each lease
// got, and for whom it was held back.
#include "daemon/tenants/compute_uses.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace gpurota::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LeaseId kFirst{1}, kSecond{2}, kThird{3};
constexpr Duration kTick = milliseconds(1);

double part_of(Duration time, const LastMinute& minute) {
  return std::chrono::duration<double>(time) / minute.known;
}

class ComputeUsesTest : public ::testing::Test {
 protected:
  // Parties with one process for each of these leases.
  void divide(std::vector<std::pair<int, std::vector<LeaseId>>> parties, int most = 0) {
    std::vector<sched::ComputeWindows::Party> terms;
    parties_.clear();
    for (const auto& [percent, leases] : parties) {
      terms.push_back({leases.front().value, percent, true, most});
      parties_.emplace_back();
      for (const LeaseId lease : leases) parties_.back().push_back({.lease = lease});
    }
    windows_.set_parties(terms);
    uses_.set_parties(windows_, parties_, now_);
  }

  // These leases always have work when they may; the others have none.
  void run(Duration time, std::vector<LeaseId> working) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += kTick) {
      std::vector<sched::ComputeWindows::State> states;
      for (std::size_t i = 0; i < parties_.size(); ++i) {
        states.emplace_back();
        for (ComputeUses::Process& process : parties_[i]) {
          const bool works =
              std::find(working.begin(), working.end(), process.lease) != working.end();
          process.busy = works && windows_.is_open(i);
          process.waits = works && !process.busy;
          states[i].busy |= process.busy;
          states[i].waits |= process.waits;
        }
      }
      uses_.count(windows_, parties_, now_);
      windows_.step(now_, states);
    }
  }

  LastMinute minute_of(LeaseId lease) const {
    const auto minute = uses_.last_minute(lease, now_);
    EXPECT_TRUE(minute);
    return minute.value_or(LastMinute());
  }

  sched::ComputeWindows windows_;
  ComputeUses uses_;
  std::vector<ComputeUses::Processes> parties_;
  TimePoint now_ = TimePoint() + seconds(100);
};

TEST_F(ComputeUsesTest, ALeaseGetsItsShareAndIsHeldBackForTheOther) {
  divide({{30, {kFirst}}, {70, {kSecond}}});
  run(seconds(20), {kFirst, kSecond});
  const LastMinute first = minute_of(kFirst);
  EXPECT_EQ(first.known, Duration(seconds(20)));
  EXPECT_NEAR(part_of(first.got.value(), first), 0.3, 0.03);
  EXPECT_NEAR(part_of(first.held, first), 0.7, 0.06);
  ASSERT_EQ(first.held_for.size(), 1u);
  EXPECT_EQ(first.held_for.at(kSecond), first.held);
  EXPECT_NEAR(part_of(minute_of(kSecond).got.value(), first), 0.7, 0.03);
}

TEST_F(ComputeUsesTest, ALeaseAloneGetsTheTimeInWhichItWorks) {
  divide({{30, {kFirst}}, {70, {kSecond}}});
  run(seconds(10), {kFirst});
  run(seconds(10), {});
  const LastMinute first = minute_of(kFirst);
  EXPECT_NEAR(part_of(first.got.value(), first), 0.5, 0.01);
  EXPECT_EQ(first.held, Duration());
  EXPECT_TRUE(first.held_for.empty());
}

TEST_F(ComputeUsesTest, LeasesWithoutASharePartTheirWindowsAndAreNamedIfTheyWork) {
  divide({{50, {kFirst}}, {50, {kSecond, kThird}}});
  run(seconds(10), {kFirst, kSecond, kThird});
  EXPECT_NEAR(part_of(minute_of(kSecond).got.value(), minute_of(kSecond)), 0.25, 0.03);
  EXPECT_EQ(minute_of(kFirst).held_for.size(), 2u);
  run(seconds(70), {kFirst, kThird});
  const LastMinute first = minute_of(kFirst);
  EXPECT_EQ(first.known, kMinute);
  ASSERT_EQ(first.held_for.size(), 1u);
  EXPECT_GT(first.held_for.at(kThird), Duration(seconds(20)));
  EXPECT_NEAR(part_of(minute_of(kThird).got.value(), first), 0.5, 0.03);
  EXPECT_EQ(minute_of(kSecond).got, Duration());
}

TEST_F(ComputeUsesTest, TimeInWhichALeaseWaitsBecauseOfItsOwnBoundIsNotHeldBackForOthers) {
  divide({{50, {kFirst}}}, 40);
  run(seconds(20), {kFirst});
  const LastMinute first = minute_of(kFirst);
  // For the bound, a millisecond in which the work ended counts in full.
  EXPECT_NEAR(part_of(first.got.value(), first), 0.37, 0.03);
  ASSERT_TRUE(first.bounded);
  EXPECT_NEAR(part_of(*first.bounded, first), 0.63, 0.03);
  EXPECT_EQ(first.held, Duration());
}

// The word of a stopped process can say for ever that it waits.
TEST_F(ComputeUsesTest, NoLeaseIsHeldBackForLongerThanTheTimeThatPassed) {
  divide({{50, {kFirst}}, {50, {kSecond}}});
  run(seconds(1), {kFirst, kSecond});
  for (ComputeUses::Processes& processes : parties_) {
    for (ComputeUses::Process& process : processes) process = {process.lease, true, true};
  }
  now_ += seconds(30);
  uses_.count(windows_, parties_, now_);
  EXPECT_LE(minute_of(kFirst).held, Duration(milliseconds(1250)));
  EXPECT_LE(minute_of(kFirst).got.value(), Duration(milliseconds(1250)));
}

TEST_F(ComputeUsesTest, ALeaseThatTakesNoPartAnyMoreIsForgotten) {
  divide({{50, {kFirst}}, {50, {kSecond}}});
  run(seconds(1), {kFirst, kSecond});
  divide({{50, {kFirst}}, {50, {kThird}}});
  EXPECT_FALSE(uses_.last_minute(kSecond, now_));
  EXPECT_EQ(minute_of(kFirst).known, Duration(seconds(1)));
  EXPECT_EQ(minute_of(kThird).known, Duration());
}

TEST(MinuteSum, ForgetsWhatIsOlderThanAMinute) {
  MinuteSum sum;
  const TimePoint begin = TimePoint() + seconds(1000);
  for (int i = 0; i < 90; ++i) sum.add(milliseconds(i < 30 ? 900 : 100), begin + seconds(i));
  EXPECT_EQ(sum.sum(begin + seconds(89)), Duration(seconds(6)));
  EXPECT_EQ(sum.sum(begin + seconds(129)), Duration(seconds(2)));
  EXPECT_EQ(sum.sum(begin + seconds(500)), Duration());
}

}  // namespace
}  // namespace gpurota::daemon
