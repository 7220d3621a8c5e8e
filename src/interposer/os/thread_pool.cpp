#include "interposer/os/thread_pool.h"

#include "interposer/os/threads.h"

#include <climits>

namespace gpurota::interposer {
namespace {

void wait_for_none(std::atomic<uint32_t>& count) {
  for (uint32_t left = count.load(); left != 0; left = count.load()) {
    futex_wait(&count, left, nullptr);
  }
}

// The wake-up may come after the waiting thread has continued and the counter's memory was reused.
// Waking an address where nobody waits does nothing.
void one_less(std::atomic<uint32_t>* count) {
  if (count->fetch_sub(1) == 1) futex_wake(count, 1);
}

}  // namespace

void ThreadPool::do_parts(Job& job) {
  for (;;) {
    const uint32_t part = job.next.fetch_add(1, std::memory_order_relaxed);
    if (part >= job.parts) return;
    job.run(job.context, part);
  }
}

void ThreadPool::say_changed() {
  changes_.fetch_add(1);
  futex_wake(&changes_, INT_MAX);
}

void ThreadPool::work() {
  for (;;) {
    const uint32_t seen = changes_.load();
    Job* job = nullptr;
    {
      Lock lock(mutex_);
      if (stopping_) return;
      job = job_;
      if (job != nullptr) inside_.fetch_add(1);
    }
    if (job != nullptr) {
      do_parts(*job);
      one_less(&inside_);
    }
    futex_wait(&changes_, seen, nullptr);
  }
}

void* ThreadPool::begin(void* self) {
  ThreadPool& pool = *static_cast<ThreadPool*>(self);
  pool.work();
  one_less(&pool.threads_);
  return nullptr;
}

void ThreadPool::start_threads() {
  while (threads_.load() < kThreads) {
    threads_.fetch_add(1);
    if (start_thread(begin, this)) continue;
    threads_.fetch_sub(1);
    return;
  }
}

void ThreadPool::divide(uint32_t parts, Part run, void* context) {
  ErrnoGuard guard;
  Job job{run, context, parts, {}};
  if (parts > 1) {
    start_threads();
    {
      Lock lock(mutex_);
      job_ = &job;
    }
    say_changed();
  }
  do_parts(job);
  {
    // From here on no thread finds the job.
    Lock lock(mutex_);
    job_ = nullptr;
  }
  wait_for_none(inside_);
}

void ThreadPool::stop() {
  ErrnoGuard guard;
  {
    Lock lock(mutex_);
    stopping_ = true;
  }
  say_changed();
  wait_for_none(threads_);
  stopping_ = false;
}

}  // namespace gpurota::interposer
