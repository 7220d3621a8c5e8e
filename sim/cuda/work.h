// Asynchronous execution: pieces of work that run on worker threads once their dependencies are
// done.
//
// Streams and graphs only decide the dependencies; the engine runs the work. One Engine per
// process, made on first use and never destroyed (workers may outlive main). Any thread.
#pragma once

#include "abi/cuda_abi.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace gpurota::sim {

class Work;
using WorkPtr = std::shared_ptr<Work>;

class Work {
 public:
  explicit Work(std::function<CUresult()> body) : body_(std::move(body)) {}

  bool is_done() const { return done_.load(std::memory_order_acquire); }
  CUresult result() const { return result_; }                 // once done
  std::uint64_t finished_ns() const { return finished_ns_; }  // once done

 private:
  friend class Engine;
  std::function<CUresult()> body_;  // may be empty: only a point in the order
  std::vector<WorkPtr> followers_;
  std::size_t waits_for_ = 0;
  CUresult result_ = CUDA_SUCCESS;
  std::uint64_t finished_ns_ = 0;
  std::atomic<bool> done_{false};
};

class Engine {
 public:
  // Runs `work` when all of `after` is done; null and finished entries do not count.
  void submit(const WorkPtr& work, const std::vector<WorkPtr>& after);
  // Like submit, then waits; runs `work` on the calling thread if `work` has nothing to wait for.
  CUresult run(const WorkPtr& work, const std::vector<WorkPtr>& after);
  void wait(const WorkPtr& work);
  // Whether the calling thread runs a host function of the program.
  static bool in_host_function();
  static void set_in_host_function(bool inside);
  // Where the engine counts pieces of work that have not ended: a word of the machine's state.
  void count_in(std::atomic<std::uint32_t>* in_flight) { in_flight_ = in_flight; }

 private:
  bool link(const WorkPtr& work, const std::vector<WorkPtr>& after);
  void execute(const WorkPtr& work);
  void make_ready(const WorkPtr& work);
  void worker();
  void begin() {
    if (auto* const count = in_flight_.load()) count->fetch_add(1);
  }
  void end() {
    if (auto* const count = in_flight_.load()) count->fetch_sub(1);
  }

  std::atomic<std::atomic<std::uint32_t>*> in_flight_{nullptr};
  std::mutex mutex_;
  std::condition_variable ready_, finished_;
  std::deque<WorkPtr> queue_;
  unsigned idle_ = 0, workers_ = 0;
};

}  // namespace gpurota::sim
