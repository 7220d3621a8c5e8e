#include "sys/worker.h"

#include "base/log.h"
#include "base/threads.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <pthread.h>

namespace gpurota::sys {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> g_left_behind{0};

// Starts a thread with all signals blocked: the loop's signalfd gets them all.
Result<std::thread> start_quiet_thread(std::function<void()> body) {
  sigset_t all, old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  auto thread = start_thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace

struct Worker::Shared {
  explicit Shared(ports::EventLoop& l) : loop(l) {}

  ports::EventLoop& loop;  // used under the mutex, and never once `ending` is set
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<Completion()>> jobs;  // guarded by mutex, as are the members below
  bool ended = false;
  std::optional<Clock::time_point> ending;  // since when the worker has been ending
  std::thread thread;                       // used by the loop's thread only
};

Worker::Worker(ports::EventLoop& loop, const std::string& name)
    : shared_(std::make_shared<Shared>(loop)), name_(name) {
  begin();
}

bool Worker::has_thread() const { return shared_->thread.joinable(); }

void Worker::begin() {
  if (has_thread()) return;
  auto thread = start_quiet_thread(
      [shared = shared_, alive = std::weak_ptr<std::size_t>(unfinished_)] { work(shared, alive); });
  if (thread) {
    shared_->thread = std::move(*thread);
    (void)::pthread_setname_np(shared_->thread.native_handle(), name_.substr(0, 15).c_str());
    return;
  }
  if (!retry_) {
    log::warn("a worker waits for a thread, trying again",
              {{"worker", name_}, {"error", thread.error().message}});
  }
  retry_ = shared_->loop.add_timer(shared_->loop.now() + kPause, ports::Urgency::kSchedule,
                                   [this] { begin(); });
}

void Worker::ask_to_end() {
  std::deque<std::function<Completion()>> forgotten;  // destroyed without holding the lock
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->ending) shared_->ending = Clock::now();
    forgotten.swap(shared_->jobs);
  }
  shared_->changed.notify_all();
}

Worker::~Worker() {
  ask_to_end();
  if (!has_thread()) return;
  bool ended = false;
  {
    std::unique_lock lock(shared_->mutex);
    ended = shared_->changed.wait_until(lock, *shared_->ending + kPatience,
                                        [this] { return shared_->ended; });
  }
  if (ended) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
    ++g_left_behind;
  }
}

int Worker::left_behind() { return g_left_behind; }

void Worker::submit(std::function<Completion()> job) {
  ++*unfinished_;
  begin();
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ending) return;
    shared_->jobs.push_back(std::move(job));
  }
  shared_->changed.notify_all();
}

void Worker::work(const std::shared_ptr<Shared>& shared, const std::weak_ptr<std::size_t>& alive) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->ending || !shared->jobs.empty(); });
    if (shared->ending) break;
    std::function<Completion()> job = std::move(shared->jobs.front());
    shared->jobs.pop_front();
    lock.unlock();
    Completion completion = job();
    job = nullptr;
    lock.lock();
    if (shared->ending) break;
    shared->loop.post([alive, completion = std::move(completion)] {
      const auto unfinished = alive.lock();
      if (!unfinished) return;
      --*unfinished;
      completion();
    });
  }
  shared->ended = true;
  shared->changed.notify_all();
}

}  // namespace gpurota::sys
