#include "interposer/swap/hasher.h"

#include "interposer/account/device.h"
#include "interposer/driver/own_calls.h"
#include "interposer/os/debug.h"
#include "interposer/swap/hash_trial.h"
#include "interposer/swap/tenant.h"

#include <interposer/hash_ptx.h>  // generated from hash.ptx

namespace gpurota::interposer {
namespace {

constexpr unsigned kHasherPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE
constexpr unsigned kDeviceMap = 2;       // CU_MEMHOSTREGISTER_DEVICEMAP
constexpr uint64_t kSumsBytes = kHashSums * sizeof(HashSum);
constexpr uint64_t kMemoryBytes = kSumsBytes + kTrialBytes;
constexpr uint32_t kMostFailures = 3;  // a failure may be for want of memory

SwapDevice& device_of(void* self) { return *static_cast<SwapDevice*>(self); }

CUresult launch(SwapDevice& device, CUdeviceptr data, uint64_t pieces, CUdeviceptr sums,
                uint64_t seed) {
  void* arguments[] = {&data, &sums, &seed};
  return GPUROTA_OWN(cuLaunchKernel)(Outside::ours(), device.hasher.function,
                                     static_cast<unsigned>(pieces), 1, 1, kHashThreads, 1, 1, 0,
                                     device.stream, arguments, nullptr);
}

// Never changes, because kept sums are compared with new ones.
uint64_t seed_of(Swap& swap) {
  if (swap.hash_seed == 0) ::syscall(SYS_getrandom, &swap.hash_seed, sizeof(swap.hash_seed), 0);
  if (swap.hash_seed == 0) swap.hash_seed = reinterpret_cast<uintptr_t>(&swap);
  return swap.hash_seed;
}

bool try_out(State& s, SwapDevice& device) {
  const SwapHasher& hasher = device.hasher;
  HashTrial trial{};
  trial.self = &device;
  trial.memory = reinterpret_cast<uint64_t*>(hasher.memory + kSumsBytes);
  trial.sums = reinterpret_cast<HashSum*>(hasher.memory);
  trial.seed = seed_of(swap_of(s));
  trial.run = [](void* self, uint32_t pieces) {
    SwapDevice& d = device_of(self);
    uint64_t token = 0;
    return launch(d, d.hasher.at + kSumsBytes, pieces, d.hasher.at, swap_of(state()).hash_seed) ==
               CUDA_SUCCESS &&
           d.calls.fence(&d, &token) == CUDA_SUCCESS && d.calls.wait(&d, token) == CUDA_SUCCESS;
  };
  return kernel_is_right(trial);
}

// Pinned memory that kernels of this context can write to.
CUresult have_memory(SwapHasher& hasher, const RelaxedCapture& relaxed) {
  ErrnoGuard guard;
  if (hasher.memory != nullptr) {  // was pinned in a context that is gone
    GPUROTA_OWN(cuMemHostUnregister)(relaxed, hasher.memory);
  } else {
    hasher.memory = static_cast<char*>(map_memory(kMemoryBytes, MADV_DONTFORK));
    if (hasher.memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* memory = hasher.memory;
  const CUresult result = GPUROTA_OWN(cuMemHostRegister_v2)(relaxed, memory, kMemoryBytes,
                                                            kHasherPortable | kDeviceMap);
  if (result != CUDA_SUCCESS) return result;
  return GPUROTA_OWN(cuMemHostGetDevicePointer_v2)(&hasher.at, memory, 0);
}

CUresult load(SwapHasher& hasher, const RelaxedCapture& relaxed) {
  CUresult result = have_memory(hasher, relaxed);
  if (result != CUDA_SUCCESS) return result;
  result = GPUROTA_OWN(cuModuleLoadData)(&hasher.module, kHashPtx);
  if (result != CUDA_SUCCESS) return result;
  return GPUROTA_OWN(cuModuleGetFunction)(&hasher.function, hasher.module, kHashKernel);
}

// With contexts_mutex held.
void prepare(State& s, SwapDevice& device) {
  SwapHasher& hasher = device.hasher;
  const InContext in(device.context);
  const RelaxedCapture relaxed;
  const int64_t begun = now_ms();
  const CUresult result = load(hasher, relaxed);
  const bool right = result == CUDA_SUCCESS && try_out(s, device);
  GPUROTA_DEBUG("device %d: the hashing kernel is %s after %lld ms (result %d)", device.device,
                right                    ? "loaded"
                : result == CUDA_SUCCESS ? "not right"
                                         : "not to be had",
                static_cast<long long>(now_ms() - begun), result);
  if (right) {
    device.space.set_hash_seed(seed_of(swap_of(s)));
    hasher.context = device.context;
    return;
  }
  if (hasher.module != nullptr) GPUROTA_OWN(cuModuleUnload)(relaxed, hasher.module);
  hasher.module = nullptr;
  hasher.function = nullptr;
  ++hasher.failures;
  if (result != CUDA_SUCCESS && hasher.failures < kMostFailures) return;
  swap_of(s).hash_off.store(1);
  GPUROTA_DEBUG("memory is not hashed: all of it is copied %s", "at each eviction");
}

}  // namespace

void prepare_hashing(State& s) {
  Swap& swap = swap_of(s);
  if (swap.drained.load() == 0 || swap.hash_off.load() != 0 || swap.copy_all.load() != 0) return;
  for (const SwapDevice& device : swap.devices) {
    if (device.evict.load() != 0 || device.restore.load() != 0) return;
  }
  for (SwapDevice& device : swap.devices) {
    if (device.ready.load() == 0 || device.space.out_bytes() == 0) continue;
    Lock lock(swap.contexts_mutex);
    if (device.context == nullptr || device.hasher.context == device.context) continue;
    return prepare(s, device);
  }
}

void forget_hasher(SwapDevice& device) {
  device.hasher.context = nullptr;
  device.hasher.module = nullptr;
  device.hasher.function = nullptr;
}

HashSum* hash_sums(void* self) {
  const SwapDevice& device = device_of(self);
  const Swap& swap = swap_of(state());
  const bool can = device.hasher.context != nullptr && device.hasher.context == device.context;
  if (!can || swap.hash_off.load() != 0 || swap.copy_all.load() != 0) return nullptr;
  return reinterpret_cast<HashSum*>(device.hasher.memory);
}

CUresult begin_hash(void* self, uint64_t address, uint64_t size, uint64_t seed, HashSum* sums) {
  SwapDevice& device = device_of(self);
  const InContext in(device.context);
  const auto offset = static_cast<uint64_t>(reinterpret_cast<char*>(sums) - device.hasher.memory);
  return launch(device, address, size / kPieceBytes, device.hasher.at + offset, seed);
}

void distrust_hash(void*) {
  if (swap_of(state()).hash_off.exchange(1) != 0) return;
  GPUROTA_DEBUG("the GPU's hash of memory is wrong: all of it is copied %s", "from now on");
}

}  // namespace gpurota::interposer
