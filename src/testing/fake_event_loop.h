// An event loop with virtual time, for tests of code that lives on one.
//
// Nothing happens by itself: the test calls advance() or run_until_idle(). Descriptors are real and
// are polled without waiting, or can be fired by hand. Timers run in the order of their times, and
// now() is exactly a timer's time while its callback runs. Only post() may be called from other
// threads; run_until() waits in real time for what other threads and processes do.
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
  // Runs until stop() as run_until does. Without timers in sight of a worker or peer it would
  // wait for ever, so it gives up with kTimeout after 60 real seconds.
  Result<void> run() override;
  void stop() override;

  // Dispatches posts, ready descriptors and due timers until there are none. Time stands still.
  // A descriptor that stays ready although its callback has run 100000 times aborts the test.
  void run_until_idle();
  // Moves time forward by `step`; each timer on the way runs at its own time.
  void advance(Duration step);
  // Moves time forward and runs nothing: the callback that calls it takes so long.
  void pass(Duration step);
  // Dispatches without moving virtual time until `done` holds; false after `limit` of real time.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Calls the callbacks of a signal or a descriptor as if it had happened.
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
