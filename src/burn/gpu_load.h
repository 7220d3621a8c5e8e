// The load on one GPU: fills its memory, checks the memory round after round, and keeps its
// arithmetic units busy with work whose results are known. Runs on a thread of its own, which may
// block for long in the driver (at gpurota's gate, for instance). stats() may be called from
// another thread at any time.
//
// Every step has two pieces of work of some milliseconds, and two steps are in flight. So the GPU
// never waits for the host, and is released within a few tens of milliseconds.
#pragma once

#include "burn/driver.h"
#include "burn/memory_plan.h"
#include "burn/options.h"
#include "burn/pace.h"
#include "burn/report.h"
#include "burn/stop_flag.h"

#include <array>
#include <deque>
#include <mutex>
#include <optional>

namespace gpurota::burn {

class GpuLoad {
 public:
  GpuLoad(const Driver& driver, const Gpu& gpu, const Options& options);

  const Gpu& gpu() const { return gpu_; }
  // Runs until `stop` is set or an error occurs (then in the stats).
  void run(const StopFlag& stop);
  Stats stats() const;
  bool is_done() const;

 private:
  struct Chunk {
    CUdeviceptr data = 0;
    std::uint64_t first_word = 0;  // index of its first word in the pattern
    std::uint64_t seed = 0;        // the seed of its content once all queued work has run
  };
  struct Step {  // a step in flight
    CUevent begin = nullptr, middle = nullptr, end = nullptr;
    bool in_flight = false;
    std::uint32_t chunks = 0, iterations = 0;
  };
  struct ErrorReport {  // the layout that the kernels write
    std::uint64_t wrong_words, lowest_index, wrong_bits, wrong_results;
  };

  Result<void> work(const StopFlag& stop);
  Result<void> open();
  Result<void> open_kernels();
  Result<void> balance(const StopFlag& stop);  // adjusts the memory held to others' need
  Result<bool> take_chunk();                   // false: refused
  Result<void> give_chunk_back();
  Result<void> step();
  Result<void> launch_checks(Step& step);
  Result<void> await(Step& step);
  Result<void> read_errors();
  Result<void> self_test(const StopFlag& stop);
  Result<void> make_errors();
  Result<void> launch(CUfunction kernel, unsigned blocks, void** arguments);
  Result<void> check(CUresult result, const char* call) { return driver_.check(result, call); }
  void close();

  const Driver& driver_;
  const Gpu gpu_;
  const Options options_;
  const TimePoint started_;

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUfunction fill_ = nullptr, check_ = nullptr, compute_ = nullptr;
  CUdeviceptr report_ = 0, expected_ = 0;
  unsigned blocks_ = 0;
  std::optional<MemoryPlan> plan_;
  std::deque<Chunk> chunks_;  // checked in turn: the front is next, and then moves to the back
  std::uint64_t next_word_ = 0, next_seed_ = 1;
  std::array<Step, 2> steps_;
  std::size_t step_count_ = 0;
  Pace check_pace_, compute_pace_;
  TimePoint errors_read_at_ = TimePoint::min();

  mutable std::mutex mutex_;  // guards the members below
  Stats stats_;
  bool done_ = false;
};

}  // namespace gpurota::burn
