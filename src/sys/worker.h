// A thread for calls that may block (NVML with a failing GPU), so that the state thread never does.
//
//   worker.run([probe, gpu] { return probe->read_sample(gpu); },   // on the worker's thread
//              [this](GpuSample sample) { on_sample(sample); });    // on the loop's thread
//
// Jobs run in order, one at a time. Made, used and destroyed on the loop's thread. Signals are
// blocked in the worker's thread. A job that hangs is left behind with its thread when the worker
// is destroyed: what it uses must be its own (shared, not borrowed). Where no thread can be had one
// is made later: jobs wait for it.
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
  // The part of a job that is run on the loop's thread.
  using Completion = std::function<void()>;

  // `loop` must outlive the worker. `name` is the thread's, for ps and gdb; 15 characters are kept.
  Worker(ports::EventLoop& loop, const std::string& name);
  // Forgets the jobs that have not begun and waits for the one that has, up to kPatience from
  // ask_to_end. No completion runs after.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  static constexpr std::chrono::milliseconds kPatience{1000};
  // Until it is tried again where there was no thread.
  static constexpr std::chrono::milliseconds kPause{100};
  // So that several workers end in the time of one.
  void ask_to_end();
  // Threads of this process that were left behind in a job. With one the process must end by _exit:
  // nobody knows what the job holds.
  static int left_behind();

  void submit(std::function<Completion()> job);
  template <class Job, class Done>
  void run(Job job, Done done) {
    submit([job = std::move(job), done = std::move(done)]() mutable -> Completion {
      auto result = std::make_shared<std::invoke_result_t<Job&>>(job());
      return [done = std::move(done), result] { done(std::move(*result)); };
    });
  }
  // For who would rather wait a little than go on without the answer: if the job is over within
  // `patience`, done runs before this returns, else on the loop as ever. Tells which. Where there
  // is no thread it does not wait.
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
  // Jobs submitted whose completions have not run. One that stays is a job that hangs.
  std::size_t unfinished() const { return *unfinished_; }

 private:
  // The state that the thread uses: it may outlive the worker.
  struct Shared;
  void begin();
  static void work(const std::shared_ptr<Shared>& shared, const std::weak_ptr<std::size_t>& alive);

  // Owned here alone; completions hold it weakly, and so know whether the worker is still there.
  std::shared_ptr<std::size_t> unfinished_ = std::make_shared<std::size_t>(0);
  std::shared_ptr<Shared> shared_;
  const std::string name_;
  ports::EventLoop::SourcePtr retry_;  // while there is no thread
};

}  // namespace gpurota::sys
