#include "sys/sd_event_loop.h"

#include "base/fd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using namespace std::chrono_literals;
using ports::EventLoop;
using ports::Urgency;

class SdEventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = SdEventLoop::make();
    ASSERT_TRUE(made) << made.error().message;
    loop_ = std::move(*made);
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    a_ = Fd(ends[0]);
    b_ = Fd(ends[1]);
  }
  void run() {
    const auto result = loop_->run();
    EXPECT_TRUE(result) << result.error().message;
  }
  Fd a_, b_;
  std::unique_ptr<SdEventLoop> loop_;
};

TEST_F(SdEventLoopTest, TimersRunInOrderAndNeverEarly) {
  std::string order;
  const TimePoint start = loop_->now();
  auto late = loop_->add_timer(start + 20ms, Urgency::kClient, [&] {
    order += 'b';
    loop_->stop();
  });
  auto soon = loop_->add_timer(start + 5ms, Urgency::kClient, [&] { order += 'a'; });
  auto never = loop_->add_timer(TimePoint::max(), Urgency::kClient, [&] { order += 'n'; });
  auto past = loop_->add_timer(TimePoint(), Urgency::kClient, [&] { order += '0'; });
  run();
  EXPECT_EQ(order, "0ab");
  EXPECT_GE(loop_->now(), start + 20ms);
}

TEST_F(SdEventLoopTest, ReportsItsLongestIteration) {
  EXPECT_EQ(loop_->longest_rounds().since_start, Duration(0));
  auto timer = loop_->add_timer(loop_->now(), Urgency::kClient, [&] {
    std::this_thread::sleep_for(20ms);
    loop_->stop();
  });
  run();
  const LongestRounds longest = loop_->longest_rounds();
  EXPECT_GE(longest.since_start, 20ms);
  EXPECT_EQ(longest.last_minute, longest.since_start);
}

TEST_F(SdEventLoopTest, ASourceMayDestroyItselfInItsCallback) {
  EventLoop::SourcePtr timer, io;
  std::vector<int> captured(1000, 7);  // would be freed while the callback runs
  int sum = 0;
  io = *loop_->watch_fd(a_.get(), false, Urgency::kClient, [&, captured](unsigned) {
    io.reset();
    for (const int value : captured) sum += value;
    timer = loop_->add_timer(loop_->now(), Urgency::kClient, [&, captured] {
      timer.reset();
      for (const int value : captured) sum += value;
      loop_->stop();
    });
  });
  ASSERT_EQ(::write(b_.get(), "x", 1), 1);
  run();
  EXPECT_EQ(sum, 14000);
}

TEST_F(SdEventLoopTest, ASourceMayDestroyAnotherThatIsReady) {
  EventLoop::SourcePtr victim;
  bool called = false;
  auto killer = loop_->watch_fd(a_.get(), false, Urgency::kSafety, [&](unsigned) {
    victim.reset();
    char c;
    (void)!::read(a_.get(), &c, 1);
    loop_->post([&] { loop_->stop(); });
  });
  victim =
      *loop_->watch_fd(b_.get(), false, Urgency::kHousekeeping, [&](unsigned) { called = true; });
  ASSERT_EQ(::write(a_.get(), "x", 1), 1);
  ASSERT_EQ(::write(b_.get(), "x", 1), 1);
  run();
  EXPECT_FALSE(called);
}

TEST_F(SdEventLoopTest, MoreUrgentSourcesGoFirst) {
  std::string order;
  auto house = loop_->add_timer(loop_->now(), Urgency::kHousekeeping, [&] {
    order += 'h';
    loop_->stop();
  });
  auto client = loop_->add_timer(loop_->now(), Urgency::kClient, [&] { order += 'c'; });
  auto safety = loop_->add_timer(loop_->now(), Urgency::kSafety, [&] { order += 's'; });
  run();
  EXPECT_EQ(order, "sch");
}

TEST_F(SdEventLoopTest, TellsOfWritableOnlyWhenAsked) {
  EventLoop::SourcePtr source;
  unsigned seen = 0;
  source = *loop_->watch_fd(a_.get(), false, Urgency::kClient, [&](unsigned events) {
    seen = events;
    source->set_writable(false);
    loop_->stop();
  });
  auto quiet = loop_->add_timer(loop_->now() + 5ms, Urgency::kClient, [&] { loop_->stop(); });
  run();
  EXPECT_EQ(seen, 0u);
  source->set_writable(true);
  run();
  EXPECT_EQ(seen, static_cast<unsigned>(EPOLLOUT));
}

TEST_F(SdEventLoopTest, CallbackMayRemoveAnotherReadyClient) {
  EventLoop::SourcePtr first, second;
  int called = 0;
  const auto end_both = [&](unsigned) {
    ++called;
    first.reset();
    second.reset();
    loop_->post([&] { loop_->stop(); });
  };
  first = *loop_->watch_fd(a_.get(), false, Urgency::kClient, end_both);
  second = *loop_->watch_fd(b_.get(), false, Urgency::kClient, end_both);
  ASSERT_EQ(::write(a_.get(), "x", 1), 1);
  ASSERT_EQ(::write(b_.get(), "x", 1), 1);
  run();
  EXPECT_EQ(called, 1);
}

// The descriptors are never read, so all are always ready.
TEST_F(SdEventLoopTest, ManyReadyClientsTakeTurnsAndHoldUpNothingUrgent) {
  constexpr std::size_t kClients = 200;
  std::vector<Fd> ends;
  std::vector<EventLoop::SourcePtr> sources;
  std::vector<std::size_t> served(kClients, 0);
  std::size_t total = 0, total_when_urgent = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ends.emplace_back(pair[0]);
    ends.emplace_back(pair[1]);
    ASSERT_EQ(::write(pair[1], "x", 1), 1);
    sources.push_back(*loop_->watch_fd(pair[0], false, Urgency::kClient, [&, i](unsigned) {
      ++served[i];
      if (++total == 100) loop_->post([&] { total_when_urgent = total; });
      if (total == 5 * kClients) loop_->stop();
    }));
  }
  run();
  const auto [least, most] = std::minmax_element(served.begin(), served.end());
  EXPECT_GE(*least, 4u);
  EXPECT_LE(*most, *least + 1);
  EXPECT_GE(total_when_urgent, 100u);
  EXPECT_LT(total_when_urgent, 150u);
}

TEST_F(SdEventLoopTest, TellsOfReadableOnlyWhileAsked) {
  for (const Urgency urgency : {Urgency::kClient, Urgency::kHousekeeping}) {
    int called = 0;
    auto source = *loop_->watch_fd(a_.get(), false, urgency, [&](unsigned) {
      ++called;
      loop_->stop();
    });
    source->set_readable(false);
    const bool first = urgency == Urgency::kClient;
    ASSERT_EQ(first ? ::write(b_.get(), "x", 1) : 1, 1);
    auto quiet = loop_->add_timer(loop_->now() + 5ms, Urgency::kClient, [&] { loop_->stop(); });
    run();
    EXPECT_EQ(called, 0);
    source->set_readable(true);
    run();
    EXPECT_EQ(called, 1);
  }
}

TEST_F(SdEventLoopTest, TellsWhenThePeerIsGone) {
  unsigned seen = 0;
  auto source = loop_->watch_fd(a_.get(), false, Urgency::kClient, [&](unsigned events) {
    seen = events;
    loop_->stop();
  });
  b_.reset();
  run();
  EXPECT_TRUE(seen & EPOLLHUP);
}

TEST_F(SdEventLoopTest, RunsEveryTaskThatOtherThreadsPost) {
  constexpr int kThreads = 4, kEach = 1000;
  int seen = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        loop_->post([&] {
          if (++seen == kThreads * kEach) loop_->stop();
        });
      }
    });
  }
  run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, kThreads * kEach);
}

TEST_F(SdEventLoopTest, ATaskThatPostsItselfDoesNotStarveTheRest) {
  std::function<void()> again = [&] { loop_->post(again); };
  loop_->post(again);
  auto timer = loop_->add_timer(loop_->now() + 2ms, Urgency::kSafety, [&] { loop_->stop(); });
  run();
}

TEST_F(SdEventLoopTest, CatchesSignals) {
  int caught = 0;
  auto source = loop_->on_signal(SIGUSR1, [&] {
    ++caught;
    loop_->stop();
  });
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  run();
  EXPECT_EQ(caught, 1);
}

TEST_F(SdEventLoopTest, AStopBeforeRunIsNotLostAndRunMayBeCalledAgain) {
  loop_->stop();
  run();
  loop_->post([&] { loop_->stop(); });
  run();
}

TEST_F(SdEventLoopTest, SourcesMayOutliveTheLoop) {
  auto timer = loop_->add_timer(loop_->now(), Urgency::kClient, [] {});
  auto io = loop_->watch_fd(a_.get(), false, Urgency::kClient, [](unsigned) {});
  loop_.reset();
  (*io)->set_writable(true);
}

TEST_F(SdEventLoopTest, ReportsADescriptorThatCannotBeWatched) {
  const auto closed = loop_->watch_fd(-1, false, Urgency::kClient, [](unsigned) {});
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("cannot watch descriptor -1"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::sys
