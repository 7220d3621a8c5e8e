// The expected charges, beside the real ones: one model for all processes of the stress program.
//
// `held` is an upper bound of what all threads hold at any moment. `held` includes a request, with
// the most that the request can take, from before the driver is called. Freed memory leaves `held`
// after the call. A refusal is wrong if, from the beginning of the request to its refusal, the
// bound never exceeded what fits; for this, each thread keeps the peak of `held` since its request
// began. `exact` is what a process holds while it rests.
#pragma once

#include "abi/cuda_abi.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace gpurota::stress {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kBlock = 2 * kMiB;
inline constexpr std::uint64_t kPoolUnit = 32 * kMiB;
inline constexpr int kMostThreads = 128;
inline constexpr int kMostProcesses = 16;

inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

enum class Kind {
  kLinear,
  kSmall,
  kPitch,
  kManaged,
  kVmm,
  kPool,
  kDefaultPool,
  kGraph,
  kArray,
  kEnd
};
inline constexpr int kKinds = static_cast<int>(Kind::kEnd);
extern const char* const kKindNames[kKinds];

// In memory shared by all processes.
struct Shared {
  std::atomic<std::int64_t> held;
  std::atomic<std::int64_t> peak[kMostThreads];
  std::atomic<std::int64_t> exact[kMostProcesses];
  std::atomic<std::int64_t> fits;
  // Threads inside a pool request: the only ones that may exceed the limit, each by a pool's unit
  // (docs/design/interposer.md).
  std::atomic<int> in_pools;
  std::atomic<int> entered_pools;  // in total
  std::atomic<std::uint64_t> made[kKinds], refused[kKinds];
  std::atomic<std::uint64_t> wrongly, corrupt, failures;
  std::atomic<int> arrived, round;  // barrier of all threads between rounds
  std::atomic<bool> stop;
  std::atomic<int>
      order[kMostProcesses];       // the parent's order for a process's first thread; 0: done
  std::atomic<std::int64_t> view;  // its answer: what cuMemGetInfo shows as used
  char first_problem[256];         // guarded by problem_taken
  std::atomic<bool> problem_taken;
};
extern Shared* shared;
extern int threads_in_all;

// Stores the first error for the report. `spare`: the bytes that a wrongly refused request would
// have left free. The number hints at the cause: about one block if a thread only counted late, the
// size of a pool if a thread counted that pool twice.
void problem(const char* what, long long code, long long spare = 0);

// The requests of one thread.
class Account {
 public:
  Account(int process, int thread) : process_(process), self_(thread) {}

  // Calls the driver; true if the driver granted the request. Then call keep() with what the
  // request really took. `most` is the most that the request can take.
  template <class Call>
  bool request(Kind kind, std::uint64_t most, Call call) {
    const bool of_pool = kind == Kind::kPool || kind == Kind::kDefaultPool;
    begin(static_cast<std::int64_t>(most));
    if (of_pool) {
      shared->entered_pools.fetch_add(1);
      shared->in_pools.fetch_add(1);
    }
    const CUresult result = call();
    if (of_pool) shared->in_pools.fetch_sub(1);
    return end(kind, static_cast<std::int64_t>(most), result);
  }
  void keep(std::uint64_t most, std::int64_t took) {
    shared->held.fetch_add(took - static_cast<std::int64_t>(most));
    shared->exact[process_].fetch_add(took);
  }
  void gone(std::int64_t bytes) {
    shared->held.fetch_sub(bytes);
    shared->exact[process_].fetch_sub(bytes);
  }
  // Counts bytes in the upper bound only.
  void hold(std::int64_t bytes) { shared->held.fetch_add(bytes); }
  int process() const { return process_; }

 private:
  void begin(std::int64_t most);
  bool end(Kind kind, std::int64_t most, CUresult result);
  int process_;
  int self_;
};

// Reports a call that failed although it must not.
bool must(CUresult result, const char* what);
#define STRESS_MUST(call) ::gpurota::stress::must((call), #call)

// The 2 MiB blocks of addresses that a process's linear memory touches.
class Blocks {
 public:
  std::int64_t enter(CUdeviceptr ptr, std::uint64_t size) { return walk(ptr, size, 1); }
  std::int64_t leave(CUdeviceptr ptr, std::uint64_t size) { return -walk(ptr, size, -1); }

 private:
  std::int64_t walk(CUdeviceptr ptr, std::uint64_t size, int by);
  std::mutex mutex_;
  std::map<std::uint64_t, int> references_;
};

}  // namespace gpurota::stress
