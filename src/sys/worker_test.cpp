#include "sys/worker.h"

#include "testing/fake_event_loop.h"
#include "testing/no_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <pthread.h>

namespace gpurota::sys {
namespace {

using testing::FakeEventLoop;

TEST(Worker, RunsJobsInOrderAndCompletionsOnTheLoop) {
  FakeEventLoop loop;
  Worker worker(loop, "a-name-longer-than-fifteen");
  const auto here = std::this_thread::get_id();
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    worker.run([i] { return std::pair(i, std::this_thread::get_id()); },
               [&](std::pair<int, std::thread::id> result) {
                 EXPECT_NE(result.second, here);
                 EXPECT_EQ(std::this_thread::get_id(), here);
                 order.push_back(result.first);
               });
  }
  EXPECT_EQ(worker.unfinished(), 100u);
  ASSERT_TRUE(loop.run_until([&] { return order.size() == 100; }));
  EXPECT_EQ(worker.unfinished(), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Worker, WaitingCallerGetsTheAnswerOnce) {
  FakeEventLoop loop;
  Worker worker(loop, "w");
  int answers = 0;
  EXPECT_TRUE(worker.run_and_wait(
      std::chrono::minutes(1), [] { return std::make_unique<int>(7); },
      [&](std::unique_ptr<int> seven) { answers += *seven; }));
  EXPECT_EQ(answers, 7);
  ASSERT_TRUE(loop.run_until([&] { return worker.unfinished() == 0; }));
  EXPECT_EQ(answers, 7);
}

TEST(Worker, TheAnswerOfAHangingJobComesOnTheLoop) {
  FakeEventLoop loop;
  Worker worker(loop, "w");
  std::promise<void> let_go;
  bool answered = false;
  EXPECT_FALSE(worker.run_and_wait(
      std::chrono::milliseconds(1),
      [&] {
        let_go.get_future().wait();
        return 1;
      },
      [&](int) { answered = true; }));
  EXPECT_FALSE(answered);
  let_go.set_value();
  EXPECT_TRUE(loop.run_until([&] { return answered; }));
}

TEST(Worker, RunsPendingTasksOnceAThreadExists) {
  FakeEventLoop loop;
  auto none = std::make_optional<testing::NoThreads>();
  Worker worker(loop, "w");
  bool done = false;
  worker.run([] { return 1; }, [&](int) { done = true; });
  EXPECT_FALSE(worker.has_thread());
  EXPECT_FALSE(worker.run_and_wait(
      std::chrono::minutes(1), [] { return 1; }, [](int) {}))
      << "nobody would answer";
  loop.advance(Worker::kPause);
  EXPECT_FALSE(worker.has_thread());
  none.reset();
  loop.advance(Worker::kPause);
  EXPECT_TRUE(worker.has_thread());
  EXPECT_TRUE(loop.run_until([&] { return done; }));
}

TEST(Worker, EndsAlsoIfItNeverHadAThread) {
  FakeEventLoop loop;
  const testing::NoThreads none;
  Worker worker(loop, "w");
  worker.run([] { return 1; }, [](int) { ADD_FAILURE(); });
}

TEST(Worker, CompletionsOfADestroyedWorkerDoNotRun) {
  FakeEventLoop loop;
  bool completed = false;
  std::promise<void> begun;
  {
    Worker worker(loop, "w");
    worker.run(
        [&] {
          begun.set_value();
          return 1;
        },
        [&](int) { completed = true; });
    worker.run([] { return 2; }, [&](int) { completed = true; });
    begun.get_future().wait();
  }
  loop.run_until_idle();
  EXPECT_FALSE(completed);
}

TEST(Worker, MayBeDestroyedInItsOwnCompletion) {
  FakeEventLoop loop;
  auto worker = std::make_unique<Worker>(loop, "w");
  worker->run([] { return 1; }, [&](int) { worker.reset(); });
  EXPECT_TRUE(loop.run_until([&] { return worker == nullptr; }));
}

TEST(Worker, AJobThatHangsDelaysTheEndOfSeveralWorkersOnce) {
  FakeEventLoop loop;
  auto release = std::make_shared<std::promise<void>>();
  const auto released = std::make_shared<std::shared_future<void>>(release->get_future());
  const auto over = std::make_shared<std::atomic<int>>(0);
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const int before = Worker::left_behind();
  std::chrono::steady_clock::time_point asked;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < 8; ++i) {
      workers.push_back(std::make_unique<Worker>(loop, "w"));
      workers.back()->run(
          [released, over, begun] {
            ++*begun;
            released->wait();
            return ++*over;
          },
          [](int) { FAIL() << "a completion ran after the end"; });
    }
    while (*begun < 8) std::this_thread::yield();
    asked = std::chrono::steady_clock::now();
    for (const auto& worker : workers) worker->ask_to_end();
  }
  const auto took = std::chrono::steady_clock::now() - asked;
  EXPECT_GE(took, Worker::kPatience);
  EXPECT_LT(took, 6 * Worker::kPatience);  // one after the other: eight times kPatience
  EXPECT_EQ(Worker::left_behind() - before, 8);
  release->set_value();
  while (*over < 8) std::this_thread::yield();
  loop.run_until_idle();
}

TEST(Worker, HasAllSignalsBlocked) {
  FakeEventLoop loop;
  Worker worker(loop, "w");
  int blocked = -1;
  worker.run(
      [] {
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        return sigismember(&mask, SIGTERM) + sigismember(&mask, SIGCHLD);
      },
      [&](int count) { blocked = count; });
  ASSERT_TRUE(loop.run_until([&] { return blocked >= 0; }));
  EXPECT_EQ(blocked, 2);
  sigset_t ours;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &ours);
  EXPECT_FALSE(sigismember(&ours, SIGTERM));
}

}  // namespace
}  // namespace gpurota::sys
