// A thread for calls that may block (NVML with a failing GPU), so that the state thread never
// blocks.
//
//   worker.run([probe, gpu] { return probe->read_sample(gpu); },   // on the worker's thread
//              [this](GpuSample sample) { on_sample(sample); });    // on the loop's thread
//
// Jobs run in order, one at a time. Made, used and destroyed on the loop's thread. Signals are
// blocked in the worker's thread. When the worker is destroyed, a job that hangs is left behind
// with its thread: a job must own what it uses (shared, not borrowed). If no thread can be started,
// the worker tries again later, and jobs wait for it.
#pragma once

#include "ports/event_loop.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace gpurota::sys {

class Worker {
 public:
  // The part of a job that runs on the loop's thread.
  using Completion = std::function<void()>;

  // `loop` must outlive the worker. `name` is the thread's name, for ps and gdb; 15 characters are
  // kept.
  Worker(ports::EventLoop& loop, const std::string& name);
  // Drops the jobs that have not begun and waits for the running one, until kPatience after
  // ask_to_end. No completion runs afterwards.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  static constexpr std::chrono::milliseconds kPatience{1000};
  // The time between two attempts to start a thread.
  static constexpr std::chrono::milliseconds kPause{100};
  // Asks without waiting, so that several workers end in the time of one.
  void ask_to_end();
  // The number of threads of this process that were left behind in a job. If there is one, the
  // process must end by _exit: nobody knows what the job holds.
  static int left_behind();

  void submit(std::function<Completion()> job);
  template <class Job, class Done>
  void run(Job job, Done done) {
    submit([job = std::move(job), done = std::move(done)]() mutable -> Completion {
      auto result = std::make_shared<std::invoke_result_t<Job&>>(job());
      return [done = std::move(done), result] { done(std::move(*result)); };
    });
  }
  // For a caller that prefers a short wait to continuing without the answer. If the job ends within
  // `patience`, `done` runs before this returns, and the result is true; otherwise `done` runs on
  // the loop as usual. Does not wait if there is no thread.
  template <class Job, class Done>
  bool run_and_wait(std::chrono::milliseconds patience, Job job, Done done) {
    const auto answer = std::make_shared<std::optional<std::invoke_result_t<Job&>>>();
    const auto over = std::make_shared<std::promise<void>>();
    const auto finish = std::make_shared<Completion>(
        [done = std::move(done), answer]() mutable { done(std::move(**answer)); });
    submit([job = std::move(job), answer, over, finish]() mutable -> Completion {
      answer->emplace(job());
      over->set_value();
      return [finish] {
        if (const Completion once = std::exchange(*finish, nullptr)) once();
      };
    });
    if (!has_thread() || over->get_future().wait_for(patience) != std::future_status::ready)
      return false;
    std::exchange(*finish, nullptr)();
    return true;
  }
  bool has_thread() const;
  // The number of submitted jobs whose completions have not run. A job that hangs stays counted.
  std::size_t unfinished() const { return *unfinished_; }

 private:
  // The state that the thread uses; may outlive the worker.
  struct Shared;
  void begin();
  static void work(const std::shared_ptr<Shared>& shared, const std::weak_ptr<std::size_t>& alive);

  // Owned by the worker alone; completions hold it weakly, to know whether the worker still exists.
  std::shared_ptr<std::size_t> unfinished_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<Shared> shared_;
  const std::string name_;
  ports::EventLoop::SourcePtr retry_;  // set while there is no thread
};

}  // namespace gpurota::sys
