#include "interposer/gate/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/wait.h>

namespace gpurota::interposer {
namespace {

bool submits() { return false; }  // the call is not part of a capture
bool captured() { return true; }

constexpr int64_t kSoon = 20000;

// Threads' marks are made for one gate per process, so all tests share it.
class GateTest : public testing::Test {
 protected:
  GateTest() {
    static auto* the_gate = new Gate();
    gate = the_gate;
    gate->set(GateState::kOpen);
  }
  ~GateTest() override { gate->set(GateState::kOpen); }

  void until(const std::function<bool()>& holds) {
    const int64_t deadline = now_ms() + kSoon;
    while (!holds()) {
      ASSERT_LT(now_ms(), deadline);
      std::this_thread::yield();
    }
  }
  bool nobody_inside() { return gate->wait_inside(now_ms() + kSoon); }
  bool somebody_inside() { return !gate->wait_inside(now_ms()); }

  Gate* gate;
};

TEST_F(GateTest, OpenGateLetsNestedCallsPass) {
  GateGuard outer(*gate, GateClass::kSubmits, submits);
  GateGuard inner(*gate, GateClass::kSubmits, submits);
  EXPECT_TRUE(somebody_inside());
}

TEST_F(GateTest, SubmittedWorkIsCountedButMemoryAccessIsNot) {
  const uint32_t before = gate->submissions();
  { const GateGuard guard(*gate, GateClass::kSubmits, submits); }
  std::thread other([&] { const GateGuard guard(*gate, GateClass::kSubmits, submits); });
  other.join();
  { const GateGuard guard(*gate, GateClass::kResidency, submits); }
  EXPECT_EQ(gate->submissions() - before, 2u);
}

TEST_F(GateTest, ClosingWaitsForThreadsInside) {
  std::atomic<int> step{0};
  std::thread program([&] {
    GateGuard guard(*gate, GateClass::kSubmits, submits);
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  until([&] { return step == 1; });
  gate->set(GateState::kShut);
  EXPECT_TRUE(somebody_inside());
  step = 2;
  EXPECT_TRUE(nobody_inside());
  program.join();
}

TEST_F(GateTest, ACallInsideAnotherDoesNotWaitForItself) {
  std::atomic<int> step{0};
  std::thread program([&] {
    GateGuard outer(*gate, GateClass::kSubmits, submits);
    step = 1;
    while (step != 2) std::this_thread::yield();
    GateGuard inner(*gate, GateClass::kSubmits, submits);
  });
  until([&] { return step == 1; });
  gate->set(GateState::kShut);
  step = 2;
  EXPECT_TRUE(nobody_inside());
  program.join();
}

TEST_F(GateTest, NoThreadIsInsideOnceTheGateIsClosed) {
  constexpr int kThreads = 3;
  std::atomic<int> inside{0};
  std::atomic<bool> stop{false};
  std::atomic<long> calls{0};
  std::vector<std::thread> program;
  for (int i = 0; i < kThreads; ++i) {
    program.emplace_back([&] {
      while (!stop) {
        GateGuard guard(*gate, GateClass::kSubmits, submits);
        inside.fetch_add(1, std::memory_order_relaxed);
        calls.fetch_add(1, std::memory_order_relaxed);
        inside.fetch_sub(1, std::memory_order_relaxed);
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    const long seen = calls;
    until([&] { return calls > seen; });
    gate->set(GateState::kShut);
    ASSERT_TRUE(nobody_inside());
    ASSERT_EQ(inside, 0);
    const long before = calls;
    gate->set(GateState::kAway);
    ASSERT_EQ(calls, before);
    gate->set(GateState::kOpen);
  }
  stop = true;
  for (std::thread& t : program) t.join();
}

TEST_F(GateTest, OnePassLetsOneSubmissionThrough) {
  gate->set(GateState::kShut);
  std::atomic<int> passed{0};
  std::vector<std::thread> program;
  for (int i = 0; i < 3; ++i) {
    program.emplace_back([&] {
      GateGuard guard(*gate, GateClass::kSubmits, submits);
      ++passed;
    });
  }
  until([&] { return gate->waiting() == 3; });
  for (int n = 1; n <= 3; ++n) {
    gate->let_one_through();
    until([&] { return passed == n && gate->waiting() == static_cast<uint32_t>(3 - n); });
    EXPECT_TRUE(nobody_inside());
    EXPECT_EQ(passed, n);
    EXPECT_TRUE(gate->take_let_through());
    EXPECT_FALSE(gate->take_let_through());
  }
  for (std::thread& t : program) t.join();
}

TEST_F(GateTest, AllCallsAreRefusedWhileNobodyCanOpenTheGate) {
  gate->set(GateState::kShut);
  std::atomic<bool> refused{false};
  std::thread program([&] {
    GateGuard guard(*gate, GateClass::kSubmits, submits);
    refused = guard.refused();
  });
  until([&] { return gate->waiting() == 1; });
  gate->set_refusing(true);
  program.join();
  EXPECT_TRUE(refused);
  EXPECT_EQ(gate->waiting(), 0u);
  EXPECT_TRUE(nobody_inside());
  {
    GateGuard comes(*gate, GateClass::kSubmits, submits);
    EXPECT_TRUE(comes.refused());
    GateGuard recorded(*gate, GateClass::kSubmits, captured);
    EXPECT_FALSE(recorded.refused());
  }
  gate->set_refusing(false);
  gate->set(GateState::kOpen);
  GateGuard again(*gate, GateClass::kSubmits, submits);
  EXPECT_FALSE(again.refused());
}

TEST_F(GateTest, WorkCapturedIntoAGraphPassesAClosedGate) {
  gate->set(GateState::kShut);
  GateGuard guard(*gate, GateClass::kSubmits, captured);
  EXPECT_TRUE(somebody_inside());
  EXPECT_EQ(gate->waiting(), 0u);
}

TEST_F(GateTest, AThreadIsInsideDuringItsCallAndDuringACallback) {
  std::thread program([&] {
    EXPECT_FALSE(is_inside_gate());
    {
      GateGuard guard(*gate, GateClass::kSubmits, submits);
      EXPECT_TRUE(is_inside_gate());
      std::thread([] { EXPECT_FALSE(is_inside_gate()) << "another thread"; }).join();
      gate->begin_callback();
      EXPECT_TRUE(is_inside_gate());
      gate->end_callback();
    }
    EXPECT_FALSE(is_inside_gate());
  });
  program.join();
}

TEST_F(GateTest, MemoryAccessWaitsOnlyWhileMemoryIsEvicted) {
  gate->set(GateState::kShut);
  { GateGuard guard(*gate, GateClass::kResidency, submits); }
  gate->set(GateState::kAway);
  std::atomic<bool> passed{false};
  std::thread program([&] {
    GateGuard guard(*gate, GateClass::kResidency, submits);
    passed = true;
  });
  until([&] { return gate->waiting() == 1; });
  EXPECT_FALSE(passed);
  gate->set(GateState::kShut);
  until([&] { return passed.load(); });
  program.join();
}

TEST_F(GateTest, ADriversCallbackNeverWaits) {
  gate->set(GateState::kAway);
  gate->begin_callback();
  {
    GateGuard guard(*gate, GateClass::kSubmits, submits);
    EXPECT_TRUE(somebody_inside());
  }
  gate->end_callback();
  EXPECT_TRUE(nobody_inside());
}

TEST_F(GateTest, ThreadThatDiesInsideCountsAsLeft) {
  std::thread([&] {
    pthread_t dying;
    const auto die = [](void* argument) -> void* {
      (void)static_cast<Gate*>(argument)->enter(GateClass::kSubmits, submits);
      return nullptr;  // never leaves
    };
    ASSERT_EQ(pthread_create(&dying, nullptr, die, gate), 0);
    pthread_join(dying, nullptr);
  }).join();
  gate->set(GateState::kShut);
  EXPECT_TRUE(nobody_inside());
}

TEST_F(GateTest, MarksOfEndedThreadsAreReused) {
  for (int i = 0; i < 3000; ++i) {
    std::thread([&] { GateGuard guard(*gate, GateClass::kSubmits, submits); }).join();
  }
  EXPECT_TRUE(nobody_inside());
}

TEST_F(GateTest, WakesEveryThreadThatWaits) {
  for (int round = 0; round < 50; ++round) {
    gate->set(GateState::kShut);
    std::vector<std::thread> program;
    for (int i = 0; i < 8; ++i) {
      program.emplace_back([&] { GateGuard guard(*gate, GateClass::kSubmits, submits); });
    }
    if (round % 2 == 0) until([&] { return gate->waiting() == 8; });
    gate->set(GateState::kOpen);
    for (std::thread& t : program) t.join();
  }
}

TEST_F(GateTest, ForkedChildHasAnOpenGateAndIsOutside) {
  void* memory = map_memory(sizeof(Gate), MADV_WIPEONFORK);
  ASSERT_NE(memory, nullptr);
  auto* wiped = static_cast<Gate*>(memory);
  GateMark* mine = t_gate_mark;
  t_gate_mark = nullptr;
  GateMark* mark = wiped->enter(GateClass::kSubmits, submits);
  wiped->set(GateState::kAway);
  const pid_t child = ::fork();
  if (child == 0) {
    // The forking thread was inside the gate. In the child the gate is wiped, so the thread leaves
    // a gate that it is not in.
    wiped->leave(mark);
    { GateGuard guard(*wiped, GateClass::kSubmits, submits); }
    ::_exit(wiped->wait_inside(now_ms() + kSoon) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  wiped->leave(mark);
  t_gate_mark = mine;
  ::munmap(memory, sizeof(Gate));
}

TEST_F(GateTest, ErrnoIsLeftAlone) {
  gate->set(GateState::kShut);
  std::thread program([&] {
    errno = 77;
    { GateGuard guard(*gate, GateClass::kSubmits, submits); }
    EXPECT_EQ(errno, 77);
  });
  until([&] { return gate->waiting() == 1; });
  gate->set(GateState::kOpen);
  program.join();
}

}  // namespace
}  // namespace gpurota::interposer
