// The kernels of `gpurota burn` on the host; src/burn/kernels.ptx says what the kernels compute.
#include "sim/cuda/kernel.h"
#include "sim/cuda/kernel_memory.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace gpurota::sim {
namespace {

constexpr std::size_t kLanes = 32, kOrbits = 8;

std::uint64_t word(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t x = index * 0x9E3779B97F4A7C15U + seed;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9U;
  return x ^ x >> 32;
}

// Flips one bit in memory if a fault is configured (flip_bits).
void spoil(const KernelRun& run, CUdeviceptr data, std::uint64_t words) {
  std::atomic<std::int32_t>& left = run.driver.machine->faults(run.context.device).flip_bits;
  std::int32_t count = left.load();
  while (count > 0 && !left.compare_exchange_weak(count, count - 1)) {
  }
  if (count <= 0) return;
  const Space::Use use(run.driver.space);
  const CUdeviceptr at = data + words / 3 * 8;
  if (touch(use, at, 8) == CUDA_SUCCESS) *reinterpret_cast<std::uint64_t*>(host_view(at)) ^= 4;
}

CUresult burn_fill(const KernelRun& run) {
  const CUdeviceptr data = run.arguments[0];
  const std::uint64_t words = run.arguments[1], first = run.arguments[2], seed = run.arguments[3];
  const CUresult result = in_steps(
      run.driver, words * 8, [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
        const CUresult touched = touch(use, data + offset, bytes);
        if (touched != CUDA_SUCCESS) return touched;
        auto* out = reinterpret_cast<std::uint64_t*>(host_view(data + offset));
        for (std::size_t i = 0; i < bytes / 8; ++i) out[i] = word(first + offset / 8 + i, seed);
        return CUDA_SUCCESS;
      });
  if (result == CUDA_SUCCESS) spoil(run, data, words);
  return result;
}

// Changes the report, which has four words: wrong words, lowest wrong index, wrong bits, wrong
// results.
template <class Change>
CUresult change_report(const KernelRun& run, CUdeviceptr report, const Change& change) {
  const Space::Use use(run.driver.space);
  const CUresult touched = touch(use, report, 32);
  if (touched == CUDA_SUCCESS) change(reinterpret_cast<std::uint64_t*>(host_view(report)));
  return touched;
}

CUresult burn_check(const KernelRun& run) {
  const CUdeviceptr data = run.arguments[0], report = run.arguments[5];
  const std::uint64_t words = run.arguments[1], first = run.arguments[2];
  const std::uint64_t seed = run.arguments[3], next = run.arguments[4];
  std::uint64_t wrong = 0, lowest = UINT64_MAX, bits = 0;
  const CUresult result = in_steps(
      run.driver, words * 8, [&](const Space::Use& use, std::size_t offset, std::size_t bytes) {
        const CUresult touched = touch(use, data + offset, bytes);
        if (touched != CUDA_SUCCESS) return touched;
        auto* at = reinterpret_cast<std::uint64_t*>(host_view(data + offset));
        for (std::size_t i = 0; i < bytes / 8; ++i) {
          const std::uint64_t index = first + offset / 8 + i;
          const std::uint64_t differs = at[i] ^ word(index, seed);
          at[i] = word(index, next);
          if (differs == 0) continue;
          ++wrong;
          lowest = std::min(lowest, index);
          bits |= differs;
        }
        return CUDA_SUCCESS;
      });
  if (result != CUDA_SUCCESS) return result;
  spoil(run, data, words);
  return change_report(run, report, [&](std::uint64_t* out) {
    out[0] += wrong;
    out[1] = std::min(out[1], lowest);
    out[2] |= bits;
  });
}

std::uint32_t follow_orbits(std::size_t lane, std::uint64_t steps) {
  std::uint32_t hash = 2166136261U;
  for (std::size_t orbit = 0; orbit < kOrbits; ++orbit) {
    float x = std::fma(static_cast<float>(lane * kOrbits + orbit), 1.0F / 512, 0.25F);
    for (std::uint64_t step = 0; step < steps; ++step) {
      const float grown = 3.99F * x;
      x = std::fma(-grown, x, grown);
    }
    hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 16777619U;
  }
  return hash;
}

// Computes one warp's share and multiplies its errors by the number of warps: a host is too slow to
// run every thread of a GPU.
CUresult burn_compute(const KernelRun& run) {
  std::uint32_t expected[kLanes] = {};
  {
    const Space::Use use(run.driver.space);
    const CUresult touched = touch(use, run.arguments[0], sizeof expected);
    if (touched != CUDA_SUCCESS) return touched;
    std::memcpy(expected, host_view(run.arguments[0]), sizeof expected);
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t repeat = 0; repeat < run.arguments[2]; ++repeat) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (follow_orbits(lane, run.arguments[1]) != expected[lane]) ++wrong;
    }
  }
  const std::uint64_t warps = std::uint64_t{run.op.grid[0]} * run.op.block[0] / kLanes;
  return change_report(run, run.arguments[3], [&](std::uint64_t* out) { out[3] += wrong * warps; });
}

}  // namespace

const std::vector<KernelSpec>& burn_kernels() {
  static const auto* all = new std::vector<KernelSpec>{
      {"burn_fill", {8, 8, 8, 8}, burn_fill},
      {"burn_check", {8, 8, 8, 8, 8, 8}, burn_check},
      {"burn_compute", {8, 4, 4, 8}, burn_compute},
  };
  return *all;
}

}  // namespace gpurota::sim
