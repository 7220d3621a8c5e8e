// Shared by the programs in swap leases: how they report errors, and how a test tells them to
// continue. Also has the parts of swap_probe. Any thread.
#pragma once

#include "tests/driver/api.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>

#include <poll.h>

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
using Clock = std::chrono::steady_clock;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  unsigned operator()() { return static_cast<unsigned>(engine_()); }

 private:
  std::mt19937 engine_;
};

inline std::atomic<bool> g_wrong{false};
inline std::atomic<std::uint64_t> g_checks{0};
inline Clock::time_point g_end;

inline std::atomic<bool> g_told{false};

inline bool goes_on() { return !g_wrong && !g_told && Clock::now() < g_end; }

inline bool ok(CUresult result, const char* what, int line) {
  if (result == CUDA_SUCCESS) return true;
  std::printf("line %d: %s is %s\n", line, what, code_name(result).c_str());
  g_wrong = true;
  return false;
}
#define OK(call) ok(call, #call, __LINE__)

inline void say(const char* word) {
  std::printf("%s\n", word);
  std::fflush(stdout);
}

// Whether there is a line on standard input, or the input is closed.
inline bool told_to_go_on() {
  pollfd p{0, POLLIN, 0};
  return ::poll(&p, 1, 0) != 0;
}

inline bool same(unsigned read, unsigned wanted, int line) {
  ++g_checks;
  if (read == wanted) return true;
  std::printf("line %d: a wrong byte: %08x instead of %08x\n", line, read, wanted);
  g_wrong = true;
  return false;
}
#define SAME(read, wanted) same(read, wanted, __LINE__)

// True if the allocation succeeded. A lack of room in the lease is no error, because other programs
// of the lease, or wired memory, may take the room.
inline bool got(CUresult result, int line) {
  return result != CUDA_ERROR_OUT_OF_MEMORY && ok(result, "an allocation", line);
}
#define GOT(call) got(call, __LINE__)

struct Buffer {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  unsigned value = 0;
};

// Checks the first word, the last one and some in between.
inline bool check(const Buffer& buffer, CUstream stream, Random& random) {
  for (int i = 0; i < 4; ++i) {
    const std::size_t words = buffer.size / 4;
    const std::size_t at = i == 0 ? 0 : i == 1 ? words - 1 : random() % words;
    unsigned read = 0;
    if (!OK(cuMemcpyDtoHAsync_v2(&read, buffer.address + at * 4, 4, stream)) ||
        !OK(cuStreamSynchronize(stream)) || !SAME(read, buffer.value)) {
      return false;
    }
  }
  return true;
}

// Captures in the thread's own stream, beside a thread that allocates (swap_probe_capture.cpp).
void capture_per_thread();
void allocate_beside_captures(CUcontext context);
// Memory in stream order, at the limit (swap_probe_pools.cpp).
int freed_is_free();
int freed_behind_work();
int freed_by_a_stranger();
int freed_in_another_stream();
int pool_figures();
// Ends slowly while it holds memory.
int end_slowly();
// The program's own virtual memory (swap_probe_vmm.cpp).
void use_vmm(CUcontext context, unsigned seed);
// Checks the answers about mapped memory, resident or not; `wait` returns once it has been evicted.
void ask_of_vmm(void (*wait)());
// Memory that is mapped once and filled, and then outlives the context.
class Orphan {
 public:
  bool make();
  bool read_back();
  bool free();

 private:
  unsigned long long handle_ = 0;
  CUdeviceptr range_ = 0;
};
// Exports handles, libgpurota's and the driver's, with every function that takes one.
int give_away();
