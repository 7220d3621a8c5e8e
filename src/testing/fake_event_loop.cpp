#include "testing/fake_event_loop.h"

#include "base/fd.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

using ports::Urgency;

constexpr int kTooOften = 100000;

struct Registration {
  enum class Kind { kFd, kTimer, kSignal } kind;
  Urgency urgency = Urgency::kHousekeeping;
  int number = -1;  // descriptor or signal
  bool writable = false;
  TimePoint when;
  std::function<void(unsigned)> callback;
  bool active = true;
  bool readable = true;
};
using RegistrationPtr = std::shared_ptr<Registration>;

unsigned to_epoll(short revents) {
  unsigned events = 0;
  if (revents & POLLIN) events |= EPOLLIN;
  if (revents & POLLOUT) events |= EPOLLOUT;
  if (revents & POLLHUP) events |= EPOLLHUP;
  if (revents & (POLLERR | POLLNVAL)) events |= EPOLLERR;
  return events;
}

}  // namespace

class FakeEventLoop::State : public std::enable_shared_from_this<State> {
 public:
  State() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  SourcePtr add(Registration registration) {
    auto shared = std::make_shared<Registration>(std::move(registration));
    registrations_.push_back(shared);
    return std::make_unique<Handle>(weak_from_this(), std::move(shared));
  }

  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  // One step: runs the pending posts, else the most urgent ready source. False if there is nothing
  // to do.
  bool dispatch_one() {
    if (run_posts()) return true;
    if (const RegistrationPtr timer = next(now); timer) {
      run_timer(*timer);
      return true;
    }
    return dispatch_fd(0);
  }

  // The earliest armed timer at or before `limit`; null if there is none.
  RegistrationPtr next(TimePoint limit) const {
    RegistrationPtr first;
    for (const RegistrationPtr& r : registrations_) {
      if (r->kind != Registration::Kind::kTimer || r->when > limit) continue;
      if (!first || std::pair(r->when, r->urgency) < std::pair(first->when, first->urgency))
        first = r;
    }
    return first;
  }

  void run_timer(Registration& timer) {
    const auto keep = find(timer);
    remove(timer);
    now = std::max(now, timer.when);
    keep->callback(0);
  }

  // Polls the descriptors and runs the most urgent ready one.
  bool dispatch_fd(int wait_ms) {
    std::vector<RegistrationPtr> watched;
    std::vector<pollfd> polls{{wake_.get(), POLLIN, 0}};
    for (const RegistrationPtr& r : registrations_) {
      if (r->kind != Registration::Kind::kFd) continue;
      watched.push_back(r);
      const int wanted = (r->readable ? POLLIN : 0) | (r->writable ? POLLOUT : 0);
      polls.push_back({r->number, static_cast<short>(wanted), 0});
    }
    if (::poll(polls.data(), polls.size(), wait_ms) <= 0) return false;
    std::size_t best = polls.size();
    for (std::size_t i = 1; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      if (best == polls.size() || watched[i - 1]->urgency < watched[best - 1]->urgency) best = i;
    }
    if (best == polls.size()) return polls[0].revents != 0;
    // Round robin among equals: the source that runs moves to the end.
    const RegistrationPtr chosen = watched[best - 1];
    std::erase(registrations_, chosen);
    registrations_.push_back(chosen);
    chosen->callback(to_epoll(polls[best].revents));
    return true;
  }

  std::vector<RegistrationPtr> matching(Registration::Kind kind, int number) const {
    std::vector<RegistrationPtr> found;
    for (const RegistrationPtr& r : registrations_) {
      if (r->kind == kind && r->number == number) found.push_back(r);
    }
    return found;
  }

  std::size_t count(Registration::Kind kind) const {
    return static_cast<std::size_t>(std::count_if(registrations_.begin(), registrations_.end(),
                                                  [&](const auto& r) { return r->kind == kind; }));
  }

  void remove(Registration& registration) {
    registration.active = false;
    std::erase_if(registrations_, [&](const auto& r) { return r.get() == &registration; });
  }

  TimePoint now{std::chrono::hours(1)};  // not zero, so that "never" and "now" differ
  bool stopped = false;

 private:
  class Handle final : public Source {
   public:
    Handle(std::weak_ptr<State> state, RegistrationPtr registration)
        : state_(std::move(state)), registration_(std::move(registration)) {}
    ~Handle() override {
      if (const auto state = state_.lock()) state->remove(*registration_);
      registration_->active = false;
    }
    void set_writable(bool writable) override { registration_->writable = writable; }
    void set_readable(bool readable) override { registration_->readable = readable; }

   private:
    std::weak_ptr<State> state_;
    RegistrationPtr registration_;
  };

  RegistrationPtr find(const Registration& registration) const {
    return *std::find_if(registrations_.begin(), registrations_.end(),
                         [&](const auto& r) { return r.get() == &registration; });
  }

  bool run_posts() {
    std::deque<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(posted_);
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
    }
    for (const auto& task : tasks) task();
    return !tasks.empty();
  }

  std::vector<RegistrationPtr> registrations_;
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
  Fd wake_;
};

FakeEventLoop::FakeEventLoop() : state_(std::make_shared<State>()) {}
FakeEventLoop::~FakeEventLoop() = default;

Result<ports::EventLoop::SourcePtr> FakeEventLoop::watch_fd(
    int fd, bool writable, Urgency urgency, std::function<void(unsigned)> callback) {
  if (fd < 0) return fail(Code::kInvalid, "cannot watch a closed descriptor");
  return state_->add({Registration::Kind::kFd, urgency, fd, writable, {}, std::move(callback)});
}

ports::EventLoop::SourcePtr FakeEventLoop::add_timer(TimePoint when, Urgency urgency,
                                                     std::function<void()> callback) {
  return state_->add({Registration::Kind::kTimer, urgency, -1, false, when,
                      [callback = std::move(callback)](unsigned) { callback(); }});
}

Result<ports::EventLoop::SourcePtr> FakeEventLoop::on_signal(int signal,
                                                             std::function<void()> callback) {
  return state_->add({Registration::Kind::kSignal,
                      Urgency::kSafety,
                      signal,
                      false,
                      {},
                      [callback = std::move(callback)](unsigned) { callback(); }});
}

void FakeEventLoop::post(std::function<void()> task) { state_->post(std::move(task)); }
TimePoint FakeEventLoop::now() const { return state_->now; }
void FakeEventLoop::stop() { state_->stopped = true; }

Result<void> FakeEventLoop::run() {
  const bool stopped = run_until([this] { return state_->stopped; }, std::chrono::seconds(60));
  state_->stopped = false;
  if (!stopped) return fail(Code::kTimeout, "the fake event loop was not stopped within 60 s");
  return {};
}

void FakeEventLoop::run_until_idle() {
  for (int i = 0; state_->dispatch_one(); ++i) {
    if (i == kTooOften) {
      std::fputs("FakeEventLoop: never idle: a ready descriptor that nobody reads?\n", stderr);
      std::abort();
    }
  }
}

void FakeEventLoop::advance(Duration step) {
  const TimePoint end = state_->now + step;
  run_until_idle();
  while (const RegistrationPtr timer = state_->next(end)) {
    state_->run_timer(*timer);
    run_until_idle();
  }
  state_->now = std::max(state_->now, end);
}

void FakeEventLoop::pass(Duration step) { state_->now += step; }

bool FakeEventLoop::run_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (state_->dispatch_one()) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    // A condition may change without an event (a file, another process): check again soon.
    (void)state_->dispatch_fd(static_cast<int>(std::min<long>(left.count(), 5)));
  }
  return true;
}

void FakeEventLoop::raise(int signal) {
  for (const auto& r : state_->matching(Registration::Kind::kSignal, signal)) {
    if (r->active) r->callback(0);
  }
}

void FakeEventLoop::fire(int fd, unsigned events) {
  for (const auto& r : state_->matching(Registration::Kind::kFd, fd)) {
    if (r->active) r->callback(events);
  }
}

std::size_t FakeEventLoop::timers() const { return state_->count(Registration::Kind::kTimer); }
std::size_t FakeEventLoop::watched_fds() const { return state_->count(Registration::Kind::kFd); }

TimePoint FakeEventLoop::next_timer() const {
  const RegistrationPtr first = state_->next(TimePoint::max());
  return first ? first->when : TimePoint::max();
}

}  // namespace gpurota::testing
