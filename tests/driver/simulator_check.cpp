// Cases that only the simulator can produce: faults, delays, other processes on demand.
#include "tests/driver/api.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool set(const std::string& what) {
  return std::system((std::string(DRIVER_GPUROTA_SIM) + " set " + what).c_str()) == 0;
}

std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  (void)cuMemGetInfo_v2(&free, &total);
  return free;
}

// Starts a program that allocates `mebibytes` on GPU 0, writes a byte to `ready`, and then does
// what `then` says (holder.cpp). The program has its own process group, so that processes that it
// leaves behind can be killed too.
pid_t start_holder(std::size_t mebibytes, const char* then, int* ready) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::dup2(ends[1], 1);
    ::close(ends[0]);
    const std::string size = std::to_string(mebibytes);
    ::execl(DRIVER_HOLDER, "driver_holder", size.c_str(), then, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  *ready = ends[0];
  return child;
}

bool wait_for_byte(int fd) {
  char byte = 0;
  return ::read(fd, &byte, 1) == 1;
}

template <class Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    const timespec pause = {0, 10'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace

SIMULATOR_CHECK(an_allocation_fails_when_it_is_told_to) {
  const WithContext with;
  CUdeviceptr p = 0, q = 0;
  EXPECT_TRUE(set("gpu0.fail_allocation=2"));
  EXPECT_OK(cuMemAlloc_v2(&p, 4 * kMiB));
  EXPECT_CODE(cuMemAlloc_v2(&q, 4 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemAlloc_v2(&q, 4 * kMiB));
  EXPECT_OK(cuMemFree_v2(p));
  EXPECT_OK(cuMemFree_v2(q));
}

SIMULATOR_CHECK(the_end_of_the_last_context_frees_pools_too) {
  std::size_t before = 0;
  {
    const WithContext with;
    CUdeviceptr p = 0;
    before = free_bytes();
    EXPECT_OK(cuMemAllocAsync(&p, 40 * kMiB, nullptr));
    EXPECT_SAME(before - free_bytes(), 64 * kMiB);
  }
  const WithContext with;
  EXPECT_SAME(free_bytes(), before);
}

SIMULATOR_CHECK(a_lost_gpu_answers_errors_until_it_is_back) {
  const WithContext with;
  CUdeviceptr p = 0;
  EXPECT_TRUE(set("gpu0.lost=1"));
  EXPECT_CODE(cuMemAlloc_v2(&p, kMiB), CUDA_ERROR_UNKNOWN);
  EXPECT_TRUE(set("gpu0.lost=0"));
  EXPECT_OK(cuMemAlloc_v2(&p, kMiB));
  EXPECT_OK(cuMemFree_v2(p));
}

SIMULATOR_CHECK(capacity_is_shared_by_all_processes_and_a_killed_one_gives_back) {
  const WithContext with;
  const std::size_t before = free_bytes();
  int ready = -1;
  const pid_t holder = start_holder(1024, "hold", &ready);
  EXPECT_TRUE(holder > 0 && wait_for_byte(ready));
  const std::size_t during = free_bytes();
  EXPECT_TRUE(before - during > 1024 * kMiB);  // including its context
  CUdeviceptr p = 0;
  EXPECT_CODE(cuMemAlloc_v2(&p, before - 512 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(set("release_delay_ms=200"));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  EXPECT_SAME(free_bytes(), during);
  EXPECT_TRUE(soon([&] { return free_bytes() == before; }));
  EXPECT_TRUE(set("release_delay_ms=0"));
  ::close(ready);
}

SIMULATOR_CHECK(a_host_that_runs_short_is_an_error_of_the_driver) {
  const WithContext with;
  CUdeviceptr p = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 512 * kMiB));
  EXPECT_TRUE(set("host_budget=64M"));
  EXPECT_CODE(cuMemsetD8_v2(p, 1, 512 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(set("host_budget=2G"));
  EXPECT_OK(cuMemsetD8_v2(p, 1, 96 * kMiB));
  EXPECT_OK(cuMemFree_v2(p));
}

SIMULATOR_CHECK(copies_take_as_long_as_the_set_rate_says) {
  const WithContext with;
  CUdeviceptr p = 0;
  CUevent start = nullptr, end = nullptr;
  float milliseconds = 0;
  EXPECT_OK(cuMemAlloc_v2(&p, 8 * kMiB));
  EXPECT_OK(cuEventCreate(&start, 0));
  EXPECT_OK(cuEventCreate(&end, 0));
  EXPECT_TRUE(set("gpu0.copy_rate=100M"));
  EXPECT_OK(cuEventRecord(start, nullptr));
  EXPECT_OK(cuMemcpyDtoDAsync_v2(p, p + 4 * kMiB, 4 * kMiB, nullptr));
  EXPECT_OK(cuEventRecord(end, nullptr));
  EXPECT_OK(cuEventSynchronize(end));
  EXPECT_TRUE(set("gpu0.copy_rate=0"));
  EXPECT_OK(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_TRUE(milliseconds >= 39.0F);
  EXPECT_OK(cuMemFree_v2(p));
}

SIMULATOR_CHECK(processes_killed_at_any_moment_leave_the_books_right) {
  const WithContext with;
  const std::size_t before = free_bytes();
  for (int round = 0; round < 10; ++round) {
    pid_t churners[4];
    for (pid_t& churner : churners) {
      int ready = -1;
      churner = start_holder(3, "churn", &ready);
      EXPECT_TRUE(churner > 0 && wait_for_byte(ready));
      ::close(ready);
    }
    CUdeviceptr p = 0;
    for (const pid_t churner : churners) {
      EXPECT_OK(cuMemAlloc_v2(&p, 4 * kMiB));
      ::kill(churner, SIGKILL);
      ::waitpid(churner, nullptr, 0);
      EXPECT_OK(cuMemFree_v2(p));
    }
    EXPECT_TRUE(soon([&] { return free_bytes() == before; }));
  }
}

SIMULATOR_CHECK(a_forked_child_holds_the_memory_only_where_the_machine_says_so) {
  const WithContext with;
  const std::size_t before = free_bytes();
  for (const bool holds : {true, false}) {
    int ready = -1;
    EXPECT_TRUE(set(holds ? "hold_for_children=1" : "hold_for_children=0"));
    const pid_t parent = start_holder(64, "fork", &ready);
    EXPECT_TRUE(parent > 0 && wait_for_byte(ready));
    ::waitpid(parent, nullptr, 0);
    if (holds) {
      EXPECT_TRUE(free_bytes() + 64 * kMiB < before);
    } else {
      EXPECT_TRUE(soon([&] { return free_bytes() == before; }));
    }
    ::kill(-parent, SIGKILL);
    EXPECT_TRUE(soon([&] { return free_bytes() == before; }));
    ::close(ready);
  }
}

SIMULATOR_CHECK(a_process_that_becomes_another_program_gives_its_memory_back) {
  const WithContext with;
  const std::size_t before = free_bytes();
  int ready = -1;
  const pid_t holder = start_holder(64, "exec", &ready);
  EXPECT_TRUE(holder > 0 && wait_for_byte(ready));
  EXPECT_TRUE(soon([&] { return free_bytes() == before; }));
  EXPECT_SAME(::kill(holder, 0), 0);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ::close(ready);
}

// A real driver allocates this memory on demand, at the latest at the next launch.
SIMULATOR_CHECK(larger_limits_of_a_context_take_memory_of_the_gpu) {
  const auto set = function<CUresult(CUlimit, std::size_t)>("cuCtxSetLimit");
  std::size_t before = 0, after = 0, total = 0;
  const WithContext with;
  EXPECT_OK(cuMemGetInfo_v2(&before, &total));
  EXPECT_OK(set(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{520} << 20));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before - after, std::size_t{512} << 20);
  EXPECT_OK(set(CU_LIMIT_STACK_SIZE, 2048));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_TRUE(before - after > std::size_t{512} << 20);
  EXPECT_OK(set(CU_LIMIT_STACK_SIZE, 1024));
  EXPECT_OK(set(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{8} << 20));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before, after);
  EXPECT_CODE(set(CU_LIMIT_MALLOC_HEAP_SIZE, total), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(set(CU_LIMIT_STACK_SIZE, SIZE_MAX / 4096), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before, after);
}

// Two threads in one context: the memory is given back exactly once.
SIMULATOR_CHECK(limits_that_two_threads_change_at_once_add_up) {
  const auto set = function<CUresult(CUlimit, std::size_t)>("cuCtxSetLimit");
  const auto push = function<CUresult(CUcontext)>("cuCtxSetCurrent");
  const auto current = function<CUresult(CUcontext*)>("cuCtxGetCurrent");
  std::size_t before = 0, after = 0, total = 0;
  const WithContext with;
  CUcontext context = nullptr;
  EXPECT_OK(current(&context));
  EXPECT_OK(cuMemGetInfo_v2(&before, &total));
  const auto change = [&](std::size_t mib) {
    if (push(context) != CUDA_SUCCESS) return;
    for (int i = 0; i < 2000; ++i) {
      (void)set(CU_LIMIT_MALLOC_HEAP_SIZE, (mib + static_cast<std::size_t>(i) % 7) << 20);
    }
  };
  std::thread other(change, 64);
  change(16);
  other.join();
  EXPECT_OK(set(CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{8} << 20));
  EXPECT_OK(cuMemGetInfo_v2(&after, &total));
  EXPECT_SAME(before, after);
}
