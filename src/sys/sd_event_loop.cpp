#include "sys/sd_event_loop.h"

#include "base/memory_reserve.h"
#include "sys/clock.h"

#include <fmt/core.h>
#include <systemd/sd-event.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using ports::Urgency;

std::int64_t priority_of(Urgency urgency) {
  switch (urgency) {
    case Urgency::kSafety:
      return -100;
    case Urgency::kSchedule:
      return -50;
    case Urgency::kClient:
      return 0;
    case Urgency::kHousekeeping:
      return 100;
  }
  return 0;
}

tl::unexpected<Error> fail_sd(std::string_view what, int negative_errno) {
  return fail_errno(what, -negative_errno);
}

}  // namespace

// One callback. sd-event passes its address back, so a registration never moves. A registration
// lives until the running callback has returned, even if that callback destroyed its own source.
struct SdEventLoop::Registration : std::enable_shared_from_this<Registration> {
  std::function<void(unsigned)> callback;
  sd_event_source* source = nullptr;

  static int on_io(sd_event_source*, int, std::uint32_t events, void* self) {
    return static_cast<Registration*>(self)->call(events);
  }
  static int on_signal(sd_event_source*, const struct signalfd_siginfo*, void* self) {
    return static_cast<Registration*>(self)->call(0);
  }

 private:
  int call(unsigned events) {
    const auto keep = shared_from_this();
    callback(events);
    return 0;
  }
};

class SdEventLoop::SdSource final : public Source {
 public:
  explicit SdSource(std::function<void(unsigned)> callback)
      : registration_(std::make_shared<Registration>()) {
    registration_->callback = std::move(callback);
  }
  ~SdSource() override { ::sd_event_source_disable_unref(registration_->source); }
  Registration* operator->() const { return registration_.get(); }
  Registration* get() const { return registration_.get(); }

  void set_writable(bool writable) override {
    writable_ = writable;
    apply();
  }
  void set_readable(bool readable) override {
    readable_ = readable;
    apply();
  }

 private:
  void apply() {
    const std::uint32_t events = (readable_ ? EPOLLIN : 0u) | (writable_ ? EPOLLOUT : 0u);
    (void)::sd_event_source_set_io_events(registration_->source, events);
  }

  std::shared_ptr<Registration> registration_;
  bool readable_ = true;
  bool writable_ = false;
};

SdEventLoop::SdEventLoop(sd_event* event, Fd wake) : event_(event), wake_(std::move(wake)) {}

SdEventLoop::~SdEventLoop() {
  wake_source_.reset();
  clients_source_.reset();
  for (auto& timers : timers_) timers.reset();
  ::sd_event_unref(event_);
}

Result<std::unique_ptr<SdEventLoop>> SdEventLoop::make() {
  sd_event* event = nullptr;
  if (const int r = ::sd_event_new(&event); r < 0) return fail_sd("cannot make an event loop", r);
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const int error_number = errno;
  std::unique_ptr<SdEventLoop> loop(new SdEventLoop(event, std::move(wake)));
  if (!loop->wake_) return fail_errno("cannot make an eventfd", error_number);
  GPUROTA_ASSIGN_OR_RETURN(loop->wake_source_,
                           loop->watch_one(loop->wake_.get(), false, Urgency::kSchedule,
                                           [self = loop.get()](unsigned) { self->run_posted(); }));
  for (const Urgency urgency :
       {Urgency::kSafety, Urgency::kSchedule, Urgency::kClient, Urgency::kHousekeeping}) {
    GPUROTA_ASSIGN_OR_RETURN(loop->timers_.at(static_cast<std::size_t>(urgency)),
                             TimerQueue::make(event, priority_of(urgency)));
  }
  GPUROTA_ASSIGN_OR_RETURN(loop->clients_, PollSet::make());
  GPUROTA_ASSIGN_OR_RETURN(
      loop->clients_source_,
      loop->watch_one(loop->clients_->fd(), false, Urgency::kClient,
                      [self = loop.get()](unsigned) { self->clients_->dispatch(); }));
  return loop;
}

Result<ports::EventLoop::SourcePtr> SdEventLoop::watch_fd(int fd, bool writable, Urgency urgency,
                                                          std::function<void(unsigned)> callback) {
  if (urgency == Urgency::kClient) return clients_->watch(fd, writable, std::move(callback));
  return watch_one(fd, writable, urgency, std::move(callback));
}

Result<ports::EventLoop::SourcePtr> SdEventLoop::watch_one(int fd, bool writable, Urgency urgency,
                                                           std::function<void(unsigned)> callback) {
  auto source = std::make_unique<SdSource>(std::move(callback));
  const std::uint32_t events = EPOLLIN | (writable ? EPOLLOUT : 0u);
  int r = ::sd_event_add_io(event_, &(*source)->source, fd, events, &Registration::on_io,
                            source->get());
  if (r >= 0) r = ::sd_event_source_set_priority((*source)->source, priority_of(urgency));
  if (r < 0) return fail_sd(fmt::format("cannot watch descriptor {}", fd), r);
  return source;
}

ports::EventLoop::SourcePtr SdEventLoop::add_timer(TimePoint when, Urgency urgency,
                                                   std::function<void()> callback) {
  return timers_.at(static_cast<std::size_t>(urgency))->add(when, std::move(callback));
}

Result<ports::EventLoop::SourcePtr> SdEventLoop::on_signal(int signal,
                                                           std::function<void()> callback) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, signal);
  if (const int e = ::pthread_sigmask(SIG_BLOCK, &mask, nullptr); e != 0) {
    return fail_errno(fmt::format("cannot block signal {}", signal), e);
  }
  auto source = std::make_unique<SdSource>([f = std::move(callback)](unsigned) { f(); });
  int r = ::sd_event_add_signal(event_, &(*source)->source, signal, &Registration::on_signal,
                                source->get());
  if (r >= 0) r = ::sd_event_source_set_priority((*source)->source, priority_of(Urgency::kSafety));
  if (r < 0) return fail_sd(fmt::format("cannot wait for signal {}", signal), r);
  return source;
}

void SdEventLoop::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(task));
  // write() fails only when 2^64-2 wake-ups are pending, and then the loop is awake anyway.
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

// Runs the tasks posted so far; tasks that they post run in the next round of the loop.
void SdEventLoop::run_posted() {
  std::deque<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
}

TimePoint SdEventLoop::now() const { return monotonic_now(); }

// Like sd_event_run, but measures the time. Refills the reserve of memory before each event, if
// possible.
int SdEventLoop::run_round() {
  (void)memory_reserve::fill();
  int r = ::sd_event_prepare(event_);
  if (r == 0) r = ::sd_event_wait(event_, UINT64_MAX);
  if (r <= 0) return r;
  const TimePoint begun = now();
  r = ::sd_event_dispatch(event_);
  rounds_.note(begun, now());
  return r;
}

Result<void> SdEventLoop::run() {
  int r = 0;
  while (!stopped_ && r >= 0) r = run_round();
  stopped_ = false;
  if (r < 0) return fail_sd("the event loop failed", r);
  return {};
}

Result<void> SdEventLoop::enable_watchdog() {
  if (const int r = ::sd_event_set_watchdog(event_, 1); r < 0) {
    return fail_sd("cannot serve the service manager's watchdog", r);
  }
  return {};
}

}  // namespace gpurota::sys
