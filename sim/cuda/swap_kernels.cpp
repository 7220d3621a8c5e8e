// The kernel with which libgpurota hashes evictable memory (src/interposer/swap/hash.ptx), on the
// host.
#include "sim/cuda/kernel.h"
#include "sim/cuda/kernel_memory.h"

#include <cstring>

namespace gpurota::sim {
namespace {

constexpr std::uint64_t kPiece = 256 << 10;  // bytes of one group of threads
constexpr std::uint64_t kKeyStep = 0xB4DD7F0B4614BEB3U;
constexpr std::uint64_t kFactors[] = {0xF93137493673750FU, 0xFD48B8A148CBC153U, 0x8DDAAD4654525573U,
                                      0x86622BB7620C1EE3U, 0xBFA2379E952EFA45U};

struct Sums {
  std::uint64_t a = 0, b = 0;
};

Sums hash_piece(const std::byte* data, std::uint64_t first, std::uint64_t seed) {
  Sums sums;
  for (std::uint64_t i = 0; i < kPiece / 8; ++i) {
    std::uint64_t x = 0;
    std::memcpy(&x, data + i * 8, 8);
    x ^= seed + (first + i) * kKeyStep;
    int round = 0;
    for (const std::uint64_t factor : kFactors) {
      x *= factor;
      x ^= x >> 32;
      if (++round == 3) sums.a += x;
    }
    sums.b += x;
  }
  return sums;
}

// gpurota_hash(const u64* data, u64* sums, u64 seed)
CUresult gpurota_hash(const KernelRun& run) {
  if (run.op.block[0] != 256) return CUDA_ERROR_LAUNCH_FAILED;
  for (std::uint64_t group = 0; group < run.op.grid[0]; ++group) {
    const Space::Use use(run.driver.space);
    const CUdeviceptr data = run.arguments[0] + group * kPiece;
    const CUdeviceptr out = run.arguments[1] + group * sizeof(Sums);
    CUresult result = touch(use, data, kPiece);
    if (result == CUDA_SUCCESS) result = touch(use, out, sizeof(Sums));
    if (result != CUDA_SUCCESS) return result;
    const Sums sums = hash_piece(host_view(data), group * (kPiece / 8), run.arguments[2]);
    std::memcpy(host_view(out), &sums, sizeof sums);
  }
  return CUDA_SUCCESS;
}

}  // namespace

const std::vector<KernelSpec>& swap_kernels() {
  static const auto* all = new std::vector<KernelSpec>{{"gpurota_hash", {8, 8, 8}, gpurota_hash}};
  return *all;
}

}  // namespace gpurota::sim
