#include "testing/fake_event_loop.h"

#include "base/fd.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

using namespace std::chrono_literals;
using ports::EventLoop;
using ports::Urgency;

TEST(FakeEventLoop, RunsTimersAtTheirOwnTimesAndInTheirOrder) {
  FakeEventLoop loop;
  const TimePoint start = loop.now();
  std::string order;
  auto b = loop.add_timer(start + 20ms, Urgency::kClient, [&] {
    order += 'b';
    EXPECT_EQ(loop.now(), start + 20ms);
  });
  EventLoop::SourcePtr c;
  auto a = loop.add_timer(start + 10ms, Urgency::kClient, [&] {
    order += 'a';
    c = loop.add_timer(loop.now() + 5ms, Urgency::kClient, [&] { order += 'c'; });
  });
  loop.advance(9ms);
  EXPECT_EQ(order, "");
  loop.advance(50ms);
  EXPECT_EQ(order, "acb");
  EXPECT_EQ(loop.now(), start + 59ms);
  EXPECT_EQ(loop.timers(), 0u);
}

TEST(FakeEventLoop, ADestroyedSourceIsNotCalledEvenIfItWasDue) {
  FakeEventLoop loop;
  EventLoop::SourcePtr second;
  bool called = false;
  auto first = loop.add_timer(loop.now() + 1ms, Urgency::kClient, [&] { second.reset(); });
  second = loop.add_timer(loop.now() + 1ms, Urgency::kClient, [&] { called = true; });
  loop.advance(1s);
  EXPECT_FALSE(called);
}

TEST(FakeEventLoop, PollsRealDescriptorsAndSurvivesTheSourceEndingItself) {
  FakeEventLoop loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  EventLoop::SourcePtr source;
  unsigned seen = 0;
  source = *loop.watch_fd(a.get(), false, Urgency::kClient, [&](unsigned events) {
    seen = events;
    source.reset();
  });
  loop.run_until_idle();
  EXPECT_EQ(seen, 0u);
  ASSERT_EQ(::write(b.get(), "x", 1), 1);
  loop.run_until_idle();
  EXPECT_EQ(seen, static_cast<unsigned>(EPOLLIN));
  EXPECT_EQ(loop.watched_fds(), 0u);
}

TEST(FakeEventLoop, ReportsWritableOnlyIfRequested) {
  FakeEventLoop loop;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd a(ends[0]), b(ends[1]);
  int calls = 0;
  EventLoop::SourcePtr source;
  source = *loop.watch_fd(a.get(), false, Urgency::kClient, [&](unsigned events) {
    EXPECT_EQ(events, static_cast<unsigned>(EPOLLOUT));
    ++calls;
    source->set_writable(false);
  });
  loop.run_until_idle();
  EXPECT_EQ(calls, 0);
  source->set_writable(true);
  loop.run_until_idle();
  EXPECT_EQ(calls, 1);
}

TEST(FakeEventLoop, RunsWhatAnotherThreadPosts) {
  FakeEventLoop loop;
  bool done = false;
  std::thread worker([&] { loop.post([&] { done = true; }); });
  EXPECT_TRUE(loop.run_until([&] { return done; }));
  worker.join();
}

TEST(FakeEventLoop, RunEndsAtStop) {
  FakeEventLoop loop;
  loop.post([&] { loop.stop(); });
  EXPECT_TRUE(loop.run());
}

TEST(FakeEventLoop, MoreUrgentSourcesRunFirst) {
  FakeEventLoop loop;
  std::string order;
  const TimePoint when = loop.now() + 1ms;
  auto late = loop.add_timer(when, Urgency::kHousekeeping, [&] { order += 'h'; });
  auto soon = loop.add_timer(when, Urgency::kSafety, [&] { order += 's'; });
  loop.advance(1ms);
  EXPECT_EQ(order, "sh");
}

TEST(FakeEventLoop, SignalsAreRaisedByHand) {
  FakeEventLoop loop;
  int caught = 0;
  auto source = loop.on_signal(15, [&] { ++caught; });
  loop.raise(15);
  loop.raise(2);
  EXPECT_EQ(caught, 1);
}

}  // namespace
}  // namespace gpurota::testing
