// Threads of our own that share a piece of work with the calling thread. The threads take no
// signals, are never joined, and have ended when stop() returns, except for their last
// instructions.
//
// A pool of zero bytes has no threads: that is what a forked child finds in wiped memory.
#pragma once

#include "interposer/os/sys.h"

#include <atomic>
#include <cstdint>

namespace gpurota::interposer {

class ThreadPool {
 public:
  using Part = void (*)(void* context, uint32_t part);

  // Calls run(context, part) once for each part below `parts`, on the caller and on the pool's
  // threads, and returns when all calls have returned. The first call starts the threads. If no
  // thread can be started, the caller does all parts. One caller at a time; not with stop().
  void divide(uint32_t parts, Part run, void* context);
  void stop();

 private:
  static constexpr uint32_t kThreads = 3;

  struct Job {
    Part run;
    void* context;
    uint32_t parts;
    std::atomic<uint32_t> next;
  };

  static void* begin(void* self);
  static void do_parts(Job& job);
  void start_threads();
  // Runs on each thread until the pool is stopped.
  void work();
  void say_changed();

  Mutex mutex_;
  Job* job_ = nullptr;  // under the mutex; on the stack of divide()
  bool stopping_ = false;
  std::atomic<uint32_t> changes_{0};  // of job_ and stopping_; threads wait for the next one
  std::atomic<uint32_t> inside_{0};   // threads that work on the job
  std::atomic<uint32_t> threads_{0};  // threads that were started
};

}  // namespace gpurota::interposer
