// Programs that submit kernels, pause, or never say that their work has ended, on a GPU whose
// compute time is divided by windows.
#include "sched/compute_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace gpurota::sched {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kTick = microseconds(100);

// A program that runs one kernel after the other, each when its window is open.
struct Program {
  int percent = 0;
  Duration kernel;     // how long one lasts if the GPU does nothing else
  Duration pause{};    // after each kernel, on the processor
  Duration silent{};   // how long after the end of a kernel the program notices it
  Duration left{};     // of the kernel that runs
  TimePoint next{};    // not before
  Duration worked{};   // on the GPU
  Duration longest{};  // between two kernels that it wanted to begin
  TimePoint wanted{};
  bool asleep = false;  // it wants nothing
  bool share = true;
  int most = 0;  // its upper bound in percent; 0: none
};

class Gpu {
 public:
  explicit Gpu(std::vector<Program> programs) : programs_(std::move(programs)) {
    std::vector<ComputeWindows::Party> parties;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      parties.push_back({i + 1, programs_[i].percent, programs_[i].share, programs_[i].most});
    }
    windows_.set_parties(parties);
  }

  void run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ += kTick) tick();
  }

  Program& operator[](std::size_t index) { return programs_[index]; }
  ComputeWindows& windows() { return windows_; }
  // The part of the time since the beginning in which this program's kernels ran.
  double part(std::size_t index) const {
    Duration all{};
    for (const Program& program : programs_) all += program.worked;
    return std::chrono::duration<double>(programs_[index].worked) / all;
  }
  // The part of so much time in which this program's kernels ran.
  double part_of(Duration time, std::size_t index) const {
    return std::chrono::duration<double>(programs_[index].worked) / time;
  }
  Duration worked() const {
    Duration all{};
    for (const Program& program : programs_) all += program.worked;
    return all;
  }
  TimePoint now() const { return now_; }

 private:
  void tick() {
    std::vector<ComputeWindows::State> states;
    for (Program& program : programs_) {
      const bool ready = !program.asleep && program.left <= Duration() && now_ >= program.next;
      if (ready && program.wanted == TimePoint()) program.wanted = now_;
      states.push_back({.busy = program.left > Duration() || now_ < program.next - program.pause,
                        .waits = ready && !windows_.is_open(states.size())});
    }
    windows_.step(now_, states);
    std::size_t running = 0;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      Program& program = programs_[i];
      if (program.wanted != TimePoint() && windows_.is_open(i)) {
        program.longest = std::max(program.longest, now_ - program.wanted);
        program.wanted = {};
        program.left = program.kernel;
      }
      running += program.left > Duration() ? 1 : 0;
    }
    // The driver divides the time equally between kernels that run at once.
    for (Program& program : programs_) {
      if (program.left <= Duration()) continue;
      const Duration took = kTick / static_cast<int>(running);
      program.left -= took;
      program.worked += took;
      if (program.left <= Duration()) program.next = now_ + kTick + program.silent + program.pause;
    }
  }

  std::vector<Program> programs_;
  ComputeWindows windows_;
  TimePoint now_ = TimePoint() + seconds(100);
};

TEST(ComputeWindows, TwoThatAlwaysWorkGetTheirShares) {
  for (const int percent : {10, 30, 50, 70}) {
    for (const Duration kernel : {Duration(microseconds(200)), Duration(milliseconds(2))}) {
      Gpu gpu({{.percent = percent, .kernel = kernel},
               {.percent = 100 - percent, .kernel = milliseconds(1)}});
      gpu.run(seconds(10));
      EXPECT_NEAR(gpu.part(0), percent / 100.0, 0.01) << percent;
      EXPECT_GE(gpu.worked(), milliseconds(9700)) << percent;
    }
  }
}

TEST(ComputeWindows, KernelsThatLastLongerThanAWindowAreMadeUpFor) {
  Gpu gpu(
      {{.percent = 30, .kernel = milliseconds(60)}, {.percent = 70, .kernel = milliseconds(1)}});
  gpu.run(seconds(20));
  EXPECT_NEAR(gpu.part(0), 0.3, 0.03);
}

TEST(ComputeWindows, ThreeDivideTheTimeInTheRatioOfTheirShares) {
  Gpu gpu({{.percent = 60, .kernel = milliseconds(1)},
           {.percent = 20, .kernel = milliseconds(1)},
           {.percent = 10, .kernel = milliseconds(1)}});
  gpu.run(seconds(20));
  EXPECT_NEAR(gpu.part(0), 6.0 / 9, 0.01);
  EXPECT_NEAR(gpu.part(1), 2.0 / 9, 0.01);
  EXPECT_NEAR(gpu.part(2), 1.0 / 9, 0.01);
}

TEST(ComputeWindows, OneAloneHasAllOfTheGpu) {
  Gpu gpu({{.percent = 30, .kernel = milliseconds(1)}, {.percent = 70, .kernel = milliseconds(1)}});
  gpu[1].asleep = true;
  gpu.run(seconds(1));
  EXPECT_EQ(gpu[0].longest, Duration());
  EXPECT_FALSE(gpu.windows().divides());
  EXPECT_EQ(gpu.windows().charged(0), Duration());
  gpu[1].asleep = false;
  gpu.run(seconds(10));
  EXPECT_TRUE(gpu.windows().divides());
  EXPECT_NEAR(std::chrono::duration<double>(gpu[1].worked).count(), 7.0, 0.15);
  gpu[1].asleep = true;
  gpu.run(seconds(1));
  EXPECT_FALSE(gpu.windows().divides());
}

// The first program works for 3 of 8 ms when it is alone.
TEST(ComputeWindows, AProgramWithPausesGetsItsShareOrItsDemand) {
  Gpu gpu({{.percent = 30, .kernel = milliseconds(3), .pause = milliseconds(5)},
           {.percent = 70, .kernel = milliseconds(1)}});
  gpu.run(seconds(10));
  EXPECT_GE(gpu.part(0), 0.22);
  Gpu seldom({{.percent = 50, .kernel = milliseconds(2), .pause = milliseconds(38)},
              {.percent = 50, .kernel = milliseconds(1)}});
  seldom.run(seconds(10));
  EXPECT_GE(seldom.part(1), 0.9);
  EXPECT_GE(seldom.worked(), milliseconds(8500));
}

TEST(ComputeWindows, AProgramThatNeverSaysThatItsWorkHasEndedKeepsNobodyWaitingForLong) {
  Gpu gpu({{.percent = 50, .kernel = milliseconds(1), .silent = seconds(1000)},
           {.percent = 50, .kernel = milliseconds(1)}});
  gpu.run(seconds(10));
  EXPECT_LE(gpu[1].longest, ComputeWindows::kMost + ComputeWindows::kLongestEnd + milliseconds(1));
  const Duration before = gpu[1].worked;
  gpu.run(seconds(10));
  EXPECT_GE(gpu[1].worked - before, milliseconds(4500)) << "nobody waits for an end any more";
}

// A kernel that polls memory may last for as long as its program.
TEST(ComputeWindows, AProgramWithAKernelThatNeverEndsStillGetsWindows) {
  ComputeWindows windows;
  const std::vector<ComputeWindows::Party> parties{{1, 50}, {2, 50}};
  windows.set_parties(parties);
  const std::vector<ComputeWindows::State> states{{.busy = true, .waits = true},
                                                  {.busy = true, .waits = true}};
  std::array<Duration, 2> open{};
  const TimePoint begin = TimePoint() + seconds(1);
  for (TimePoint now = begin; now < begin + seconds(10); now += kTick) {
    windows.step(now, states);
    for (std::size_t i = 0; i < 2; ++i) open[i] += windows.is_open(i) ? kTick : Duration();
  }
  EXPECT_GE(open[0], seconds(2));
  EXPECT_GE(open[1], seconds(2));
}

TEST(ComputeWindows, AProgramThatSaysThatItWaitsAndNeverBeginsKeepsTheOthersFromLittle) {
  ComputeWindows windows;
  const std::vector<ComputeWindows::Party> parties{{1, 50}, {2, 50}};
  windows.set_parties(parties);
  Duration others{};
  const TimePoint begin = TimePoint() + seconds(1);
  for (TimePoint now = begin; now < begin + seconds(5); now += kTick) {
    const std::vector<ComputeWindows::State> states{
        {.busy = false, .waits = true}, {.busy = windows.is_open(1), .waits = !windows.is_open(1)}};
    windows.step(now, states);
    others += windows.is_open(1) ? kTick : Duration();
  }
  EXPECT_GE(others, seconds(2));
}

// A debt of kMostDebt at a share of 10 % takes 5 s to work off.
TEST(ComputeWindows, WhatAPartyOwesIsBoundedAndForgottenAfterAWhile) {
  Gpu gpu({{.percent = 10, .kernel = seconds(2)}, {.percent = 90, .kernel = milliseconds(1)}});
  gpu.run(seconds(1));
  gpu[0].kernel = milliseconds(1);
  gpu.run(seconds(20));
  EXPECT_GT(gpu[0].longest, seconds(2));
  EXPECT_LE(gpu[0].longest, milliseconds(5500));
  gpu[0].kernel = seconds(2);
  gpu.run(seconds(1));
  gpu[0].kernel = milliseconds(1);
  while (gpu[0].left > Duration()) gpu.run(milliseconds(100));
  gpu[1].asleep = true;
  gpu.run(seconds(2));
  gpu[1].asleep = false;
  const Duration before = gpu[0].worked;
  gpu.run(seconds(1));
  EXPECT_NEAR(std::chrono::duration<double>(gpu[0].worked - before).count(), 0.1, 0.02);
}

TEST(ComputeWindows, PartiesComeAndGoWhileWindowsAreUsed) {
  Gpu gpu({{.percent = 50, .kernel = milliseconds(1)}, {.percent = 50, .kernel = milliseconds(1)}});
  gpu.run(milliseconds(50));
  ComputeWindows& windows = gpu.windows();
  ASSERT_TRUE(windows.divides());
  const std::vector<ComputeWindows::Party> one{{2, 50}};
  windows.set_parties(one);
  const std::vector<ComputeWindows::State> busy{{.busy = true, .waits = false}};
  windows.step(gpu.now(), busy);
  EXPECT_TRUE(windows.is_open(0));
  windows.set_parties({});
  windows.step(gpu.now(), {});
  EXPECT_FALSE(windows.divides());
}

TEST(ComputeWindows, AProgramNeverHasMoreThanItsBoundAlsoWhenItIsAlone) {
  for (const int most : {5, 30, 80}) {
    for (const Duration kernel : {Duration(microseconds(200)), Duration(milliseconds(60))}) {
      Gpu gpu({{.percent = 50, .kernel = kernel, .most = most}});
      gpu.run(seconds(20));
      EXPECT_NEAR(gpu.part_of(seconds(20), 0), most / 100.0, 0.01) << most;
      EXPECT_FALSE(gpu.windows().divides());
    }
  }
}

TEST(ComputeWindows, AProgramHasItsShareBesideOthersAndItsBoundAlone) {
  Gpu gpu({{.percent = 30, .kernel = milliseconds(1), .most = 40},
           {.percent = 70, .kernel = milliseconds(1)}});
  gpu.run(seconds(10));
  EXPECT_NEAR(gpu.part_of(seconds(10), 0), 0.3, 0.02);
  EXPECT_NEAR(gpu.part_of(seconds(10), 1), 0.7, 0.02);
  gpu[0].worked = {};
  gpu[1].asleep = true;
  gpu.run(seconds(10));
  EXPECT_NEAR(gpu.part_of(seconds(10), 0), 0.4, 0.02);
}

TEST(ComputeWindows, APartyThatGetsABoundOwesNothingForTheTimeBefore) {
  Gpu gpu({{.percent = 30, .kernel = milliseconds(1)}, {.percent = 70, .kernel = milliseconds(1)}});
  gpu.run(seconds(5));
  gpu[1].asleep = true;
  gpu.run(seconds(1));
  const std::vector<ComputeWindows::Party> bounded{{1, 10, true, 10}, {2, 70}};
  gpu.windows().set_parties(bounded);
  gpu[0].worked = {};
  gpu.run(seconds(2));
  EXPECT_NEAR(gpu.part_of(seconds(2), 0), 0.1, 0.035);
}

TEST(ComputeWindows, TheFirstStepCountsNoTime) {
  ComputeWindows windows;
  const std::vector<ComputeWindows::Party> parties{{.id = 1, .percent = 50, .most = 10}};
  windows.set_parties(parties);
  const std::vector<ComputeWindows::State> busy{{.busy = true, .waits = false}};
  windows.step(TimePoint() + seconds(100), busy);
  EXPECT_TRUE(windows.is_open(0));
}

// The thread that calls step(), or the whole machine, was stopped.
TEST(ComputeWindows, TimeThatNobodyHasSeenIsNotCharged) {
  ComputeWindows windows;
  const std::vector<ComputeWindows::Party> parties{{1, 50}, {2, 50}};
  windows.set_parties(parties);
  const std::vector<ComputeWindows::State> busy{{.busy = true, .waits = true},
                                                {.busy = true, .waits = true}};
  TimePoint now = TimePoint() + seconds(100);
  windows.step(now, busy);
  windows.step(now += milliseconds(1), busy);
  ASSERT_TRUE(windows.holder());
  const std::size_t holder = *windows.holder();
  windows.step(now += seconds(10), busy);
  windows.step(now += milliseconds(100), busy);
  EXPECT_LE(windows.charged(holder), milliseconds(400));
}

// Work that ends only when another submission has begun: a stream that waits for the host.
TEST(ComputeWindows, ABoundIsNoHangForWorkThatNeedsTheNextSubmission) {
  for (const int most : {1, 10}) {
    ComputeWindows windows;
    const std::vector<ComputeWindows::Party> parties{
        {.id = 1, .percent = 50, .share = false, .most = most}};
    windows.set_parties(parties);
    TimePoint now = TimePoint() + seconds(100);
    Duration waited{}, longest{};
    int submissions = 0;
    for (const TimePoint end = now + seconds(60); now < end; now += milliseconds(1)) {
      // Work of 30 ms each, and a wait for the host at the end of every second one.
      const bool works = submissions % 2 == 1 || waited < milliseconds(30);
      const bool open = windows.is_open(0);
      const std::vector<ComputeWindows::State> state{{.busy = works, .waits = !open}};
      windows.step(now, state);
      waited += milliseconds(1);
      longest = std::max(longest, waited);
      if (!windows.is_open(0) || waited < milliseconds(30)) continue;
      ++submissions;
      waited = {};
    }
    EXPECT_GE(submissions, most == 1 ? 10 : 50) << most;
    EXPECT_LE(longest, most == 1 ? milliseconds(8000) : milliseconds(1100)) << most;
  }
}

// A program that submits the next kernel while the last one runs.
TEST(ComputeWindows, ABoundCountsLongKernelsBehindWhichASubmissionWaits) {
  for (const Duration kernel : {milliseconds(60), milliseconds(400), milliseconds(900)}) {
    ComputeWindows windows;
    const std::vector<ComputeWindows::Party> parties{
        {.id = 1, .percent = 50, .share = false, .most = 30}};
    windows.set_parties(parties);
    TimePoint now = TimePoint() + seconds(100);
    Duration left{}, worked{};
    for (const TimePoint end = now + seconds(60); now < end; now += milliseconds(1)) {
      const std::vector<ComputeWindows::State> state{
          {.busy = left > Duration(), .waits = !windows.is_open(0)}};
      windows.step(now, state);
      if (left <= Duration() && windows.is_open(0)) left = kernel;
      worked += left > Duration() ? milliseconds(1) : Duration();
      left -= milliseconds(1);
    }
    EXPECT_NEAR(std::chrono::duration<double>(worked) / seconds(60), 0.3, 0.03);
  }
}

// The others get what the bound leaves.
TEST(ComputeWindows, ABoundBelowTheOwnPartLeavesTheRestToTheOthers) {
  Gpu gpu({{.percent = 50, .kernel = milliseconds(1), .most = 20},
           {.percent = 25, .kernel = milliseconds(1)},
           {.percent = 25, .kernel = milliseconds(1)}});
  gpu.run(seconds(20));
  EXPECT_NEAR(gpu.part_of(seconds(20), 0), 0.2, 0.01);
  EXPECT_NEAR(gpu.part_of(seconds(20), 1), 0.4, 0.02);
  EXPECT_NEAR(gpu.part_of(seconds(20), 2), 0.4, 0.02);
}

TEST(ComputeWindows, NobodyWaitsForAPartyWithoutAShare) {
  Gpu gpu({{.percent = 50, .kernel = milliseconds(1), .share = false, .most = 30},
           {.percent = 50, .kernel = milliseconds(1), .share = false}});
  gpu.run(seconds(10));
  EXPECT_FALSE(gpu.windows().divides());
  EXPECT_EQ(gpu[1].longest, Duration());
  // The program runs beside the other one, and all of that time counts.
  EXPECT_NEAR(gpu.part_of(seconds(10), 0), 0.15, 0.02);
}

// At random: over some seconds no program has more than its bound.
TEST(ComputeWindows, NobodyIsAboveItsBound) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto number = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    std::vector<Program> programs(static_cast<std::size_t>(number(1, 4)));
    for (Program& program : programs) {
      program.percent = number(5, 95);
      program.share = number(0, 1) == 0;
      program.most = number(0, 2) == 0 ? 0 : number(5, 95);
      program.kernel = microseconds(number(1, 300) * 100);
      program.pause = number(0, 2) == 0 ? Duration(milliseconds(number(0, 50))) : Duration();
    }
    Gpu gpu(programs);
    for (int i = 0; i < 20; ++i) {
      for (std::size_t who = 0; who < programs.size(); ++who) {
        gpu[who].asleep = number(0, 3) == 0;
      }
      const Duration time = milliseconds(number(50, 2000));
      std::vector<Duration> before;
      for (std::size_t who = 0; who < programs.size(); ++who) before.push_back(gpu[who].worked);
      gpu.run(time);
      for (std::size_t who = 0; who < programs.size(); ++who) {
        if (programs[who].most == 0) continue;
        const Duration allowed = time * programs[who].most / 100 + ComputeBound::kMostSaved;
        EXPECT_LE(gpu[who].worked - before[who], allowed + programs[who].kernel + milliseconds(1))
            << "seed " << seed;
      }
    }
  }
}

// At random: nobody who wants the GPU waits for long, and at most one party has a window.
TEST(ComputeWindows, NobodyStarves) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto number = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    std::vector<Program> programs(static_cast<std::size_t>(number(2, 5)));
    for (Program& program : programs) {
      program.percent = number(5, 95);
      program.kernel = microseconds(number(1, 300) * 100);
      program.pause = number(0, 2) == 0 ? Duration(milliseconds(number(0, 50))) : Duration();
      program.silent = number(0, 5) == 0 ? Duration(milliseconds(number(0, 200))) : Duration();
    }
    Gpu gpu(programs);
    for (int i = 0; i < 50; ++i) {
      const auto who = static_cast<std::size_t>(number(0, static_cast<int>(programs.size()) - 1));
      gpu[who].asleep = number(0, 3) == 0;
      gpu.run(milliseconds(number(10, 200)));
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      EXPECT_LE(gpu[i].longest, seconds(5)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gpurota::sched
