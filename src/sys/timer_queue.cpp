#include "sys/timer_queue.h"

#include "sys/clock.h"

#include <systemd/sd-event.h>

#include <ctime>
#include <utility>

namespace gpurota::sys {
namespace {

// In microseconds. Passed with every timer, because the default of sd-event is 250 ms.
constexpr std::uint64_t kAccuracy = 1000;

// Rounded up: a timer never fires early. TimePoint::max() is "never" (UINT64_MAX).
std::uint64_t to_microseconds(TimePoint when) {
  using std::chrono::microseconds;
  if (when == TimePoint::max()) return UINT64_MAX;
  const auto since = std::chrono::ceil<microseconds>(when.time_since_epoch()).count();
  return since < 1 ? 1 : static_cast<std::uint64_t>(since);
}

}  // namespace

class TimerQueue::Handle final : public ports::EventLoop::Source {
 public:
  Handle(std::shared_ptr<Waiting> waiting, Waiting::iterator place)
      : waiting_(std::move(waiting)), place_(place), timer_(place->second) {}
  ~Handle() override {
    if (timer_->waits) waiting_->erase(place_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  std::shared_ptr<Waiting> waiting_;
  Waiting::iterator place_;
  std::shared_ptr<Timer> timer_;
};

Result<std::unique_ptr<TimerQueue>> TimerQueue::make(sd_event* event, std::int64_t priority) {
  std::unique_ptr<TimerQueue> queue(new TimerQueue);
  int r = ::sd_event_add_time(event, &queue->source_, CLOCK_MONOTONIC, UINT64_MAX, kAccuracy,
                              &TimerQueue::on_time, queue.get());
  if (r >= 0) r = ::sd_event_source_set_priority(queue->source_, priority);
  if (r < 0) return fail_errno("cannot make timers", -r);
  return queue;
}

TimerQueue::~TimerQueue() { ::sd_event_source_disable_unref(source_); }

ports::EventLoop::SourcePtr TimerQueue::add(TimePoint when, std::function<void()> callback) {
  const auto place = waiting_->emplace(when, std::make_shared<Timer>(Timer{std::move(callback)}));
  auto handle = std::make_unique<Handle>(waiting_, place);
  if (place == waiting_->begin()) arm();
  return handle;
}

int TimerQueue::on_time(sd_event_source* /*source*/, std::uint64_t /*now*/, void* self) {
  static_cast<TimerQueue*>(self)->run_first();
  return 0;
}

// Runs one timer at a time: a more urgent source comes first in the next round of the loop.
void TimerQueue::run_first() {
  std::shared_ptr<Timer> due;
  const auto first = waiting_->begin();
  if (first != waiting_->end() && first->first <= monotonic_now()) {
    due = std::move(first->second);
    due->waits = false;
    waiting_->erase(first);
  }
  arm();
  if (due) due->callback();
}

// A timer in the past runs in the next round.
void TimerQueue::arm() {
  const bool empty = waiting_->empty();
  const TimePoint next = empty ? TimePoint::max() : waiting_->begin()->first;
  (void)::sd_event_source_set_time(source_, to_microseconds(next));
  (void)::sd_event_source_set_enabled(source_, empty ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

}  // namespace gpurota::sys
