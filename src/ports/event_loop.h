// The one loop of the daemon's state thread, as the rest of the daemon sees it.
//
// sys/sd_event_loop.cpp implements it with sd-event; testing/fake_event_loop.h with virtual time.
// All functions are called on the loop's thread except post(). Callbacks run on that thread, one at
// a time. A registration lives as long as its handle; destroying the handle inside its own callback
// is allowed.
#pragma once

#include "base/result.h"
#include "core/time.h"

#include <functional>
#include <memory>

#include <sys/types.h>

namespace gpurota::ports {

// The loop does not notice when the wall clock is set. Code that waits until the wall clock shows a
// certain time therefore sets its timer to this duration at most. When the timer expires, the code
// reads the wall clock, and sets the timer again if the wall clock does not show that time yet.
inline constexpr Duration kLongestWallWait = std::chrono::minutes(1);

// Classes of urgency: sources of a more urgent class are dispatched first.
enum class Urgency { kSafety, kSchedule, kClient, kHousekeeping };

class EventLoop {
 public:
  // Unregisters in its destructor.
  class Source {
   public:
    virtual ~Source() = default;
    // For watch_fd(): whether to call back also while the descriptor is writable.
    virtual void set_writable(bool /*writable*/) {}
    // For watch_fd(): whether to call back while the descriptor is readable (initially: yes).
    // Hang-ups always call back.
    virtual void set_readable(bool /*readable*/) {}
  };
  using SourcePtr = std::unique_ptr<Source>;

  virtual ~EventLoop() = default;

  // Calls back while `fd` is readable (level-triggered), hung up or in error, and, if `writable`,
  // while it is writable, too. `events` are EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR. Does not own
  // `fd`: destroy the handle before closing `fd`.
  virtual Result<SourcePtr> watch_fd(int fd, bool writable, Urgency urgency,
                                     std::function<void(unsigned events)> callback) = 0;
  // Calls back once, at or up to 1 ms after `when` (sd-event's default accuracy would be 250 ms).
  // Cannot fail, as it needs nothing but memory.
  virtual SourcePtr add_timer(TimePoint when, Urgency urgency, std::function<void()> callback) = 0;
  // Blocks the signal for the process and calls back when it arrives.
  virtual Result<SourcePtr> on_signal(int signal, std::function<void()> callback) = 0;
  // Calls `task` soon. The only function that other threads may call.
  virtual void post(std::function<void()> task) = 0;

  virtual TimePoint now() const = 0;
  // Runs until stop(). An error is the loop's own (out of descriptors), never a callback's.
  virtual Result<void> run() = 0;
  virtual void stop() = 0;
};

}  // namespace gpurota::ports
