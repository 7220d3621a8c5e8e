// Threads that keep the library busy while a scenario of traps_probe.cpp does something to its
// process.
#pragma once

#include "probe.h"

#include <atomic>
#include <thread>
#include <vector>

// Four threads that allocate and free while this object lives. `always`: no allocation may be
// refused.
class Allocators {
 public:
  Allocators(size_t size, bool always) {
    for (int i = 0; i < 4; ++i) threads_.emplace_back([this, size, always] { run(size, always); });
  }
  ~Allocators() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void run(size_t size, bool always) {
    CUcontext context = nullptr;
    EXPECT(cu.primary_retain(&context, 0) == CUDA_SUCCESS);
    EXPECT(cu.ctx_set_current(context) == CUDA_SUCCESS);
    while (!stop_.load()) {
      CUdeviceptr p = 0;
      const CUresult result = cu.mem_alloc(&p, size);
      EXPECT(result == CUDA_SUCCESS || !always);
      if (result == CUDA_SUCCESS) EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
    }
  }
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};
