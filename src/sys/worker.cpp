#include "sys/worker.h"

#include <csignal>

#include <pthread.h>

namespace gpurota::sys {
namespace {

// A thread that begins with all signals blocked: the loop's signalfd gets them all.
template <class Body>
std::jthread make_quiet_thread(Body body) {
  sigset_t all, old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  std::jthread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return thread;
}

}  // namespace

Worker::Worker(ports::EventLoop& loop, const std::string& name) : loop_(loop) {
  thread_ = make_quiet_thread([this] { work(); });
  (void)::pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    jobs_.clear();
  }
  changed_.notify_one();
  thread_.join();
}

void Worker::submit(std::function<Completion()> job) {
  ++*unfinished_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Worker::work() {
  const std::weak_ptr<std::size_t> alive = unfinished_;
  for (;;) {
    std::function<Completion()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    loop_.post([alive, completion = job()] {
      const auto unfinished = alive.lock();
      if (!unfinished) return;
      --*unfinished;
      completion();
    });
  }
}

}  // namespace gpurota::sys
