// An event loop with virtual time, for tests of code that runs on one.
//
// Nothing happens by itself: the test calls advance() or run_until_idle(). Descriptors are real;
// they are polled without waiting, or fired by hand. Timers run in the order of their times, and
// now() is exactly a timer's time while its callback runs. Only post() may be called from other
// threads; run_until() waits in real time for other threads and processes.
#pragma once

#include "ports/event_loop.h"

#include <chrono>
#include <cstddef>
#include <memory>

namespace gpurota::testing {

class FakeEventLoop final : public ports::EventLoop {
 public:
  FakeEventLoop();
  ~FakeEventLoop() override;
  FakeEventLoop(const FakeEventLoop&) = delete;
  FakeEventLoop& operator=(const FakeEventLoop&) = delete;

  Result<SourcePtr> watch_fd(int fd, bool writable, ports::Urgency urgency,
                             std::function<void(unsigned)> callback) override;
  SourcePtr add_timer(TimePoint when, ports::Urgency urgency,
                      std::function<void()> callback) override;
  Result<SourcePtr> on_signal(int signal, std::function<void()> callback) override;
  void post(std::function<void()> task) override;
  TimePoint now() const override;
  // Runs until stop(), like run_until. The loop cannot know whether a worker or peer will ever
  // answer, so it gives up with kTimeout after 60 real seconds.
  Result<void> run() override;
  void stop() override;

  // Dispatches posts, ready descriptors and due timers until there are none. Virtual time stands
  // still. Aborts the test if a descriptor stays ready although its callback has run 100000 times.
  void run_until_idle();
  // Moves time forward by `step`; each timer on the way runs at its own time.
  void advance(Duration step);
  // Moves time forward without running anything, as if the calling callback took that long.
  void pass(Duration step);
  // Dispatches without moving virtual time until `done` returns true; false after `limit` of real
  // time.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Calls the callbacks of a signal or a descriptor as if it had occurred.
  void raise(int signal);
  void fire(int fd, unsigned events);

  std::size_t timers() const;  // armed, not yet run
  std::size_t watched_fds() const;
  // The time of the next timer, or TimePoint::max().
  TimePoint next_timer() const;

 private:
  class State;
  std::shared_ptr<State> state_;  // sources may outlive the loop
};

}  // namespace gpurota::testing
