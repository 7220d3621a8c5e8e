// The decisions of latency classes: when a burst of work begins and ends, and when a submission of
// another process is held back.
#include "interposer/gate/bursts.h"
#include "interposer/gate/group_length.h"
#include "interposer/gate/holds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace gpurota::interposer {
namespace {

constexpr uint64_t kA = 0x1000, kB = 0x2000, kC = 0x4000, kEvent = 0x3000;
constexpr uint64_t kContext = 0x10;
constexpr uint32_t kBudget = 800;
constexpr int64_t kStart = 1'000'000;

class BurstsTest : public testing::Test {
 protected:
  bool busy() const { return (word.load() & 1) != 0; }
  // One of the two counts of a submission.
  bool count(uint64_t stream) {
    return bursts->submit(&word, stream, now, [&] { return traits; });
  }
  void submit(uint64_t stream) {
    count(stream);
    count(stream);
  }
  void end(const StreamMark& mark) { bursts->ended(&word, mark, now); }
  void wait_for(uint64_t stream) { end(bursts->mark(stream)); }
  void wait_for_all(Bursts::Which which, uint64_t context = kContext) {
    Bursts::AllMarks marks;
    bursts->mark_all(which, context, &marks);
    bursts->all_ended(&word, marks, now);
  }
  // `stream` waits for the work that `other` has now.
  void join(uint64_t stream, uint64_t other) {
    bursts->join(stream, bursts->mark(other), [&] { return traits; });
  }

  std::unique_ptr<Bursts> bursts{new Bursts()};
  int64_t now = kStart;
  StreamTraits traits{kContext, false};  // of streams that are used for the first time
  std::atomic<uint32_t> word{0};
};

TEST_F(BurstsTest, BurstLastsFromTheFirstSubmissionUntilItsStreamHasEnded) {
  EXPECT_FALSE(busy());
  submit(kA);
  submit(kA);
  EXPECT_TRUE(busy());
  wait_for(kA);
  EXPECT_FALSE(busy());
  EXPECT_EQ(word.load(), 2u);
  EXPECT_EQ(bursts->bursts(), 1u);
}

TEST_F(BurstsTest, WorkOfAnotherStreamKeepsTheBurstGoing) {
  submit(kA);
  submit(kB);
  wait_for(kA);
  EXPECT_TRUE(busy());
  wait_for(kB);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, SubmissionAfterTheMarkIsNotEndedByIt) {
  submit(kA);
  const StreamMark mark = bursts->mark(kA);
  submit(kA);
  end(mark);
  EXPECT_TRUE(busy());
}

TEST_F(BurstsTest, SubmissionUnderWayIsNotEndedByAMark) {
  count(kA);
  const StreamMark mark = bursts->mark(kA);
  count(kA);
  end(mark);
  EXPECT_TRUE(busy());
  wait_for(kA);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, EventEndsTheWorkBeforeIt) {
  submit(kA);
  bursts->record(kEvent, kA);
  StreamMark mark{};
  ASSERT_TRUE(bursts->find_event(kEvent, &mark));
  end(mark);
  EXPECT_FALSE(busy());
  submit(kA);
  end(mark);  // the event was not recorded again
  EXPECT_TRUE(busy());
}

TEST_F(BurstsTest, UnknownEventHasNoMark) {
  StreamMark mark{};
  EXPECT_FALSE(bursts->find_event(kEvent, &mark));
}

TEST_F(BurstsTest, WaitForTheContextEndsAllStreams) {
  submit(kA);
  submit(kB);
  wait_for_all(Bursts::Which::kAll);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, WaitForTheLegacyStreamEndsOnlyBlockingStreams) {
  submit(kA);
  traits.is_blocking = true;
  submit(kB);
  wait_for_all(Bursts::Which::kBlocking);
  EXPECT_TRUE(busy());
  wait_for(kA);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, WaitForAContextEndsNoStreamOfAnother) {
  traits.is_blocking = true;
  submit(kA);
  traits.context = kContext + 1;
  submit(kB);
  wait_for_all(Bursts::Which::kAll);
  EXPECT_TRUE(busy());
  wait_for_all(Bursts::Which::kBlocking, kContext + 1);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, DestroyedContextHasNoStreams) {
  submit(kA);
  bursts->forget_context(&word, kContext, now);
  EXPECT_FALSE(busy());
  traits = {kContext + 1, true};
  submit(kA);  // the same handle, of another context and blocking
  wait_for_all(Bursts::Which::kBlocking, kContext + 1);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, MarkFromBeforeTheJoinDoesNotEndTheOtherStream) {
  submit(kB);
  wait_for(kB);
  const StreamMark before = bursts->mark(kB);
  submit(kA);
  join(kB, kA);
  end(before);
  EXPECT_TRUE(busy());
  wait_for_all(Bursts::Which::kBlocking);
  EXPECT_TRUE(busy());
  wait_for(kB);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, StreamThatWaitsForAnotherEndsItsWork) {
  submit(kA);
  join(kB, kA);
  wait_for(kB);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, JoinCoversOnlyTheWorkBeforeTheEvent) {
  submit(kA);
  join(kB, kA);
  submit(kA);
  wait_for(kB);
  EXPECT_TRUE(busy());
}

TEST_F(BurstsTest, JoinsAreFollowed) {
  submit(kA);
  join(kB, kA);
  submit(kB);
  join(kC, kB);
  wait_for(kC);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, WorkBeforeTheJoinDoesNotEndTheOtherStream) {
  submit(kB);
  const StreamMark before = bursts->mark(kB);
  submit(kA);
  submit(kB);
  join(kB, kA);
  end(before);
  EXPECT_TRUE(busy());
  wait_for(kB);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, StreamInTheSamePlaceAsADestroyedOneHasNoneOfItsJoins) {
  submit(kA);
  submit(kB);
  join(kB, kA);
  bursts->forget(&word, kB, now);
  EXPECT_TRUE(busy()) << "the work of kA continues";
  submit(kC);
  wait_for(kC);
  EXPECT_TRUE(busy());
  wait_for(kA);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, JoinsBeyondTheTableOnlyDelayTheEnd) {
  for (uint64_t i = 1; i <= Bursts::kStreams - 2; ++i) {
    submit(kA + 16 * i);
    join(kA, kA + 16 * i);
  }
  submit(kA);
  wait_for(kA);
  EXPECT_TRUE(busy());
  now += Bursts::kSilentUs;
  wait_for(kA);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, StreamForWhichNobodyWaitsCountsOnlyForAWhile) {
  submit(kA);
  now += Bursts::kSilentUs - 1;
  submit(kB);
  wait_for(kB);
  EXPECT_TRUE(busy());
  now += 1;
  wait_for(kB);
  EXPECT_FALSE(busy());
  submit(kA);
  EXPECT_TRUE(busy());
}

TEST_F(BurstsTest, DestroyedStreamHasNoWork) {
  submit(kA);
  bursts->forget(&word, kA, now);
  EXPECT_FALSE(busy());
  submit(kA);  // a new stream with the same handle
  EXPECT_TRUE(busy());
  wait_for(kA);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, StreamsBeyondTheTableShareItsLastEntry) {
  for (uint64_t stream = 1; stream <= 2 * Bursts::kStreams; ++stream) submit(stream * 16);
  EXPECT_TRUE(busy());
  for (uint64_t stream = 1; stream <= 2 * Bursts::kStreams; ++stream) wait_for(stream * 16);
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, LongBurstGrowsTheWordWhenItSubmitsOrWorkEnds) {
  EXPECT_TRUE(count(kA));
  count(kA);
  const uint32_t before = word.load();
  now += Bursts::kRefreshUs - 1;
  submit(kA);
  EXPECT_EQ(word.load(), before);
  now += 1;
  submit(kA);
  EXPECT_EQ(word.load(), before + 2);
  const StreamMark mark = bursts->mark(kA);
  now += Bursts::kRefreshUs;
  count(kB);
  EXPECT_EQ(word.load(), before + 4);
  now += Bursts::kRefreshUs;
  end(mark);
  EXPECT_EQ(word.load(), before + 6);
  EXPECT_TRUE(busy());
}

TEST_F(BurstsTest, ThreadsThatUseTheSameStreamsLeaveNoBurst) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < 20'000; ++n) {
        const uint64_t stream = (1 + n % 3) * 16;
        submit(stream);
        join((1 + (n + 1) % 3) * 16, stream);
        wait_for(stream);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t stream = 1; stream <= 3; ++stream) wait_for(stream * 16);  // ends the joins
  EXPECT_FALSE(busy());
}

TEST_F(BurstsTest, ThreadsThatSubmitAndWaitLeaveNoBurst) {
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20'000; ++n) {
        submit(i * 16);
        wait_for(i * 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(busy());
}

class HoldsTest : public testing::Test {
 protected:
  uint32_t word_of(uint32_t index) const { return words[index]; }
  bool passes() const {
    return holds->passes(held_for, [&](uint32_t i) { return word_of(i); });
  }
  HoldStep next() {
    return holds->next(held_for, kBudget, now, [&](uint32_t i) { return word_of(i); });
  }
  // Holds a submission back as long as the words stay as they are. Returns for how long.
  int64_t hold() {
    const int64_t begun = now;
    holds->begin(kBudget, now);
    for (HoldStep step = next(); step.kind == HoldStep::Kind::kWait; step = next()) {
      EXPECT_GT(step.timeout_us, 0);
      now += step.timeout_us;
    }
    holds->end(kBudget, now);
    return now - begun;
  }

  std::unique_ptr<Holds> holds{new Holds()};
  uint32_t words[GPUROTA_MOST_HOLDS] = {};
  uint32_t held_for = 1;
  int64_t now = kStart;
};

TEST_F(HoldsTest, NothingIsHeldBackWhileNobodyHasHadWork) { EXPECT_TRUE(passes()); }

TEST_F(HoldsTest, SubmissionWaitsUntilTheWorkHasEndedAndTheGapIsOver) {
  words[0] = 1;
  EXPECT_FALSE(passes());
  holds->begin(kBudget, now);
  HoldStep step = next();
  ASSERT_EQ(step.kind, HoldStep::Kind::kWait);
  EXPECT_EQ(step.seen, 1u);
  now += 3'000;
  words[0] = 2;
  step = next();
  ASSERT_EQ(step.kind, HoldStep::Kind::kWait);
  EXPECT_EQ(step.timeout_us, Holds::kLeastGapUs);
  now += step.timeout_us;
  EXPECT_EQ(next().kind, HoldStep::Kind::kPass);
  holds->end(kBudget, now);
  EXPECT_TRUE(passes());
  EXPECT_EQ(holds->held_us(), 3'000u + Holds::kLeastGapUs);
}

TEST_F(HoldsTest, WordThatDoesNotChangeStopsCounting) {
  words[0] = 1;
  now += 1'000'000;
  int64_t held = 0;
  while (!passes()) {
    held += hold();
    now += 1'000;
    ASSERT_LE(held, 2 * Holds::kStuckUs);
  }
  EXPECT_TRUE(passes());  // still busy, and ignored
  words[0] = 3;
  EXPECT_FALSE(passes());
}

TEST_F(HoldsTest, ShortPausesMakeTheGapLonger) {
  for (int token = 0; token < 8; ++token) {
    words[0] += 1;
    holds->begin(kBudget, now);
    (void)next();
    now += 1'000;
    words[0] += 1;
    (void)next();
    now += Holds::kMostGapUs - 1;  // the server's own pause
    holds->end(kBudget, now);
    now += 5'000 * (token % 2);
  }
  words[0] += 1;
  holds->begin(kBudget, now);
  (void)next();
  words[0] += 1;
  EXPECT_GT(next().timeout_us, Holds::kLeastGapUs);
  holds->end(kBudget, now);
}

// Whatever the words do, submissions are held back for no more than the budget of the time.
TEST_F(HoldsTest, BudgetBoundsTheSumOfAllHolds) {
  std::mt19937 random(5);
  held_for = 0b1111;
  const int64_t begun = now;
  while (now - begun < 20'000'000) {
    for (uint32_t i = 0; i < 4; ++i) words[i] += static_cast<uint32_t>(random() % 3);
    if (passes()) {
      now += 100;
      continue;
    }
    holds->begin(kBudget, now);
    for (HoldStep step = next(); step.kind == HoldStep::Kind::kWait; step = next()) {
      now += 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(step.timeout_us));
      words[step.index] += static_cast<uint32_t>(random() % 2);
    }
    holds->end(kBudget, now);
    now += 50;
  }
  const auto held = static_cast<int64_t>(holds->held_us());
  EXPECT_LE(held, (now - begun) * kBudget / 1000 + Holds::kMostSavedUs);
  EXPECT_GE(held, (now - begun) / 2);  // these words are nearly always busy
}

TEST_F(HoldsTest, HoldsOfSeveralThreadsCountOnce) {
  words[0] = 1;
  holds->begin(kBudget, now);
  (void)next();
  holds->begin(kBudget, now);
  (void)next();
  now += 2'000;
  words[0] = 2;
  (void)next();
  now += Holds::kLeastGapUs;
  EXPECT_EQ(next().kind, HoldStep::Kind::kPass);
  EXPECT_EQ(next().kind, HoldStep::Kind::kPass);
  holds->end(kBudget, now);
  holds->end(kBudget, now);
  EXPECT_EQ(holds->held_us(), 2'000u + Holds::kLeastGapUs);
}

using Wait = GroupLength::Wait;

TEST(GroupLengthTest, GroupsAreAsLongAsTheTimeThatTheyTake) {
  GroupLength length{};
  EXPECT_EQ(length.most(), GroupLength::kMost);
  int64_t now = kStart;
  length.waited(8, Wait::kEnded, now);
  EXPECT_EQ(length.most(), GroupLength::kMost) << "nothing is known yet";
  length.waited(8, Wait::kEnded, now += 8 * 20);
  EXPECT_EQ(length.most(), GroupLength::kMost);
  length.waited(8, Wait::kEnded, now += 8 * 100);
  EXPECT_EQ(length.most(), 2u);
  length.waited(2, Wait::kEnded, now += 2 * 5'000);
  EXPECT_EQ(length.most(), 1u);
}

TEST(GroupLengthTest, WorkThatDoesNotEndInTimeMakesGroupsOfOne) {
  GroupLength length{};
  length.waited(8, Wait::kTooLong, kStart);
  EXPECT_EQ(length.most(), 1u);
  EXPECT_EQ(length.most(4), 1u);
}

TEST(GroupLengthTest, WorkThatHadEndedBeforeSomebodyWaitedMakesGroupsLonger) {
  GroupLength length{};
  int64_t now = kStart;
  length.waited(8, Wait::kEnded, now);
  length.waited(8, Wait::kEnded, now += 8'000);
  EXPECT_EQ(length.most(), 1u);
  int rounds = 0;
  while (length.most() < GroupLength::kMost) {
    length.waited(1, Wait::kOver, now += 5);
    ASSERT_LT(++rounds, 10);
  }
  length.waited(8, Wait::kEnded, now += 1'000'000);
  EXPECT_EQ(length.most(), GroupLength::kMost) << "only one end was seen";
  length.waited(8, Wait::kEnded, now += 1'000'000);
  EXPECT_EQ(length.most(), GroupLength::kMost) << "with a pause";
}

}  // namespace
}  // namespace gpurota::interposer
