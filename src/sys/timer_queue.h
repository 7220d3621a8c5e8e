// The timers of one urgency, behind one source of sd-event. Setting a timer needs only memory and
// no other resource of the system, so what is scheduled does happen. Used by sd_event_loop.cpp on
// the loop's thread; timers may outlive the queue.
#pragma once

#include "base/result.h"
#include "ports/event_loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

struct sd_event;
struct sd_event_source;

namespace gpurota::sys {

class TimerQueue {
 public:
  // `priority` is the priority of sd-event.
  static Result<std::unique_ptr<TimerQueue>> make(sd_event* event, std::int64_t priority);
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // Like ports::EventLoop::add_timer.
  ports::EventLoop::SourcePtr add(TimePoint when, std::function<void()> callback);

 private:
  class Handle;
  struct Timer {
    std::function<void()> callback;
    bool waits = true;
  };
  // By time; timers of the same time in the order they were added.
  using Waiting = std::multimap<TimePoint, std::shared_ptr<Timer>>;

  TimerQueue() = default;
  static int on_time(sd_event_source* source, std::uint64_t now, void* self);
  void run_first();
  void arm();

  std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  sd_event_source* source_ = nullptr;
};

}  // namespace gpurota::sys
