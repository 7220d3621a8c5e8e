#include "interposer/driver/parking.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace gpurota::interposer {
namespace {

constexpr int64_t kSoonMs = 20000;

// Marks of threads are made for one process, so all tests share one object.
class ParkingTest : public testing::Test {
 protected:
  ParkingTest() {
    static auto* the_parking = new Parking();
    parking = the_parking;
    parking->set(ParkState::kRuns);
  }
  ~ParkingTest() override { parking->set(ParkState::kRuns); }

  static bool comes_true(const std::function<bool()>& holds) {
    const int64_t deadline = now_ms() + kSoonMs;
    // One true answer counts: a thread that finds the process closed makes the next one false.
    while (!holds()) {
      if (now_ms() >= deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // A question that the driver would be asked, or false: it was answered.
  bool asks(bool may_answer = true) {
    ParkMark* const mark = parking->enter(may_answer, captures);
    if (mark == nullptr) return false;
    parking->leave(mark);
    return true;
  }

  Parking* parking;
  std::atomic<uint32_t> captures{0};
};

TEST_F(ParkingTest, AProcessThatRunsAsksTheDriver) {
  EXPECT_TRUE(asks());
  EXPECT_TRUE(asks(false));
  EXPECT_TRUE(parking->nobody_asks());
}

TEST_F(ParkingTest, AQuestionThatIsUnderWayIsSeenUntilItEnds) {
  std::atomic<int> step{0};
  std::thread asker([&] {
    ParkMark* const mark = parking->enter(true, captures);
    step = 1;
    while (step < 2) std::this_thread::yield();
    parking->leave(mark);
    step = 3;
  });
  ASSERT_TRUE(comes_true([&] { return step == 1; }));
  parking->set(ParkState::kCloses);
  EXPECT_FALSE(parking->nobody_asks());
  step = 2;
  EXPECT_TRUE(comes_true([&] { return parking->nobody_asks(); }));
  asker.join();
}

TEST_F(ParkingTest, ANewQuestionWaitsWhileClosedAndIsAnsweredWhenParked) {
  parking->set(ParkState::kCloses);
  std::atomic<int> asked{-1};
  std::thread asker([&] { asked = asks() ? 1 : 0; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(asked, -1);
  EXPECT_TRUE(parking->nobody_asks());
  parking->set(ParkState::kParked);
  EXPECT_TRUE(comes_true([&] { return asked == 0; }));
  asker.join();
  EXPECT_FALSE(asks());
}

TEST_F(ParkingTest, AQuestionThatOnlyTheDriverCanAnswerWaitsUntilTheProcessRuns) {
  parking->set(ParkState::kCloses);
  parking->set(ParkState::kParked);
  std::atomic<int> times{-1}, captured{-1};
  std::atomic<uint32_t> one_capture{1};
  std::thread of_times([&] { times = asks(false) ? 1 : 0; });
  std::thread of_captures([&] {
    ParkMark* const mark = parking->enter(true, one_capture);
    if (mark != nullptr) parking->leave(mark);
    captured = mark != nullptr ? 1 : 0;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(times, -1);
  EXPECT_EQ(captured, -1);
  parking->set(ParkState::kRuns);
  EXPECT_TRUE(comes_true([&] { return times == 1 && captured == 1; }));
  of_times.join();
  of_captures.join();
}

TEST_F(ParkingTest, AThreadThatEndedInsideDoesNotCount) {
  std::thread ends_inside([&] { (void)parking->enter(true, captures); });
  ends_inside.join();
  EXPECT_TRUE(comes_true([&] { return parking->nobody_asks(); }));
}

// No question is ever in the driver once nobody_asks() has said so.
TEST_F(ParkingTest, ManyThreadsNeverAskWhileClosed) {
  std::atomic<bool> stop{false}, closed{false};
  std::atomic<int> wrong{0};
  std::thread askers[4];
  for (std::thread& asker : askers) {
    asker = std::thread([&] {
      while (!stop) {
        ParkMark* const mark = parking->enter(true, captures);
        if (mark == nullptr) continue;
        if (closed) ++wrong;
        parking->leave(mark);
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    parking->set(ParkState::kCloses);
    EXPECT_TRUE(comes_true([&] { return parking->nobody_asks(); }));
    closed = true;
    parking->set(ParkState::kParked);
    std::this_thread::yield();
    closed = false;
    parking->set(ParkState::kRuns);
  }
  stop = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ParkingTest, ARoundOfTheWorkerCountsAsOneQuestionAndItsCallsPass) {
  {
    const ParkRound round(*parking);
    ASSERT_FALSE(round.rests());
    EXPECT_FALSE(parking->worker_rests());
    parking->set(ParkState::kCloses);
    EXPECT_FALSE(parking->nobody_asks());
    EXPECT_TRUE(asks());  // does not wait for itself
  }
  EXPECT_TRUE(parking->nobody_asks());
  EXPECT_TRUE(ParkRound(*parking).rests());
  EXPECT_TRUE(parking->nobody_asks());
  EXPECT_TRUE(parking->worker_rests());
  parking->set(ParkState::kRests);
  EXPECT_TRUE(ParkRound(*parking).rests());
  EXPECT_TRUE(asks());
  parking->set(ParkState::kRuns);
  EXPECT_FALSE(ParkRound(*parking).rests());
}

}  // namespace
}  // namespace gpurota::interposer
