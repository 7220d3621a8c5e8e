// hammer PROCESSES THREADS SECONDS LIMIT_MIB: processes with threads that allocate and free at
// random, under one limit, while NVML is sampled.
//
// Run under `gpurota run --memory`. Prints one JSON object, in which:
//   over_limit     samples at which NVML's sum was above the limit; must be 0
//   peak_percent   the largest sum seen, of the limit; shows that the limit can be reached
//   wrongly        refusals of requests that would have fitted at any moment since the request
//                  began: each thread keeps the peak of `held` since then, and in `held` a block
//                  counts from before its allocation until after its release
//   longest_ms     the longest that an allocation took, granted or refused
// Every block is written at both ends and checked before it is freed.
#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kMostThreads = 256;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Shared {
  std::atomic<std::int64_t> held;                // upper bound of what all threads hold
  std::atomic<std::int64_t> peak[kMostThreads];  // of `held`, since this thread's request began
  std::atomic<std::int64_t> fits;                // the limit less the contexts; 0: unknown
  std::atomic<std::int64_t> longest_us;
  std::atomic<std::uint64_t> allocations, refusals, wrongly, corrupt, failures;
  std::atomic<int> ready;
  std::atomic<bool> go, stop;
};

Shared* shared;
int threads_in_all;

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

struct Cuda {
  CUresult (*init)(unsigned);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*set_current)(CUcontext);
  CUresult (*alloc)(CUdeviceptr*, std::size_t);
  CUresult (*free)(CUdeviceptr);
  CUresult (*set)(CUdeviceptr, unsigned, std::size_t);
  CUresult (*copy_out)(void*, CUdeviceptr, std::size_t);
};

Cuda load_cuda() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  return {symbol<decltype(Cuda::init)>(library, "cuInit"),
          symbol<decltype(Cuda::device_get)>(library, "cuDeviceGet"),
          symbol<decltype(Cuda::retain)>(library, "cuDevicePrimaryCtxRetain"),
          symbol<decltype(Cuda::set_current)>(library, "cuCtxSetCurrent"),
          symbol<decltype(Cuda::alloc)>(library, "cuMemAlloc_v2"),
          symbol<decltype(Cuda::free)>(library, "cuMemFree_v2"),
          symbol<decltype(Cuda::set)>(library, "cuMemsetD32_v2"),
          symbol<decltype(Cuda::copy_out)>(library, "cuMemcpyDtoH_v2")};
}

void raise_to(std::atomic<std::int64_t>& peak, std::int64_t value) {
  std::int64_t now = peak.load();
  while (now < value && !peak.compare_exchange_weak(now, value)) {
  }
}

struct Block {
  CUdeviceptr at;
  std::uint64_t size;
  std::uint32_t mark;
};

bool allocate(const Cuda& cuda, int self, std::uint64_t size, std::uint32_t mark, Block& out) {
  shared->peak[self].store(shared->held.load());
  const auto bytes = static_cast<std::int64_t>(size);
  const std::int64_t held = shared->held.fetch_add(bytes) + bytes;
  for (int i = 0; i < threads_in_all; ++i) raise_to(shared->peak[i], held);
  out = {0, size, mark};
  const auto asked = std::chrono::steady_clock::now();
  const CUresult result = cuda.alloc(&out.at, size);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - asked;
  raise_to(shared->longest_us, static_cast<std::int64_t>(took.count() * 1000));
  if (result == CUDA_SUCCESS) {
    shared->allocations.fetch_add(1);
    cuda.set(out.at, mark, 16);
    cuda.set(out.at + size - 64, mark, 16);
    return true;
  }
  const std::int64_t peak = shared->peak[self].load();
  shared->held.fetch_sub(bytes);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) shared->failures.fetch_add(1);
  shared->refusals.fetch_add(1);
  const std::int64_t fits = shared->fits.load();
  if (fits > 0 && peak <= fits) {
    shared->wrongly.fetch_add(1);
    std::fprintf(stderr,
                 "wrongly refused: %llu MiB, after %.1f ms; at most %lld of %lld MiB held\n",
                 static_cast<unsigned long long>(size / kMiB), took.count(),
                 static_cast<long long>(peak) / static_cast<long long>(kMiB),
                 static_cast<long long>(fits) / static_cast<long long>(kMiB));
  }
  return false;
}

void release(const Cuda& cuda, const Block& block) {
  std::uint32_t ends[2] = {};
  cuda.copy_out(&ends[0], block.at, 4);
  cuda.copy_out(&ends[1], block.at + block.size - 4, 4);
  if (ends[0] != block.mark || ends[1] != block.mark) shared->corrupt.fetch_add(1);
  if (cuda.free(block.at) != CUDA_SUCCESS) shared->failures.fetch_add(1);
  shared->held.fetch_sub(static_cast<std::int64_t>(block.size));
}

void work(const Cuda& cuda, CUcontext context, int self, std::uint64_t largest) {
  cuda.set_current(context);
  std::mt19937 random(static_cast<unsigned>(self) * 7919 + 1);
  std::vector<Block> blocks;
  while (!shared->stop.load()) {
    // Multiples of the driver's blocks of 2 MiB, which need no rounding. Few are large: memory
    // inside a call is charged but not yet held, so large requests would keep the sum away from the
    // limit.
    const std::uint64_t bound = random() % 16 == 0 ? largest : largest / 16;
    const std::uint64_t size = 2 * kMiB * (1 + random() % (bound / (2 * kMiB) + 1));
    const bool full = blocks.size() > 64;
    if (!full && random() % 5 < 3) {
      Block block;
      if (allocate(cuda, self, size, static_cast<std::uint32_t>(random()), block)) {
        blocks.push_back(block);
        continue;
      }
    }
    if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      release(cuda, blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) release(cuda, block);
}

int run_process(int index, int threads, std::uint64_t largest) {
  const Cuda cuda = load_cuda();
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuda.init(0) != CUDA_SUCCESS || cuda.device_get(&device, 0) != CUDA_SUCCESS ||
      cuda.retain(&context, device) != CUDA_SUCCESS) {
    std::fprintf(stderr, "process %d: no context\n", index);
    shared->failures.fetch_add(1);
    shared->ready.fetch_add(1);
    return 1;
  }
  shared->ready.fetch_add(1);
  while (!shared->go.load()) std::this_thread::yield();
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(work, cuda, context, index * threads + i, largest);
  }
  for (std::thread& worker : workers) worker.join();
  return 0;
}

// The sum that NVML shows for our children, on the first GPU that lists one of them.
class Observer {
 public:
  explicit Observer(std::vector<pid_t> pids) : pids_(std::move(pids)) {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) std::exit(2);
    symbol<nvmlReturn_t (*)()>(library, "nvmlInit_v2")();
    get_ = symbol<decltype(get_)>(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    const auto count = symbol<nvmlReturn_t (*)(unsigned*)>(library, "nvmlDeviceGetCount_v2");
    const auto by_index =
        symbol<nvmlReturn_t (*)(unsigned, nvmlDevice_t*)>(library, "nvmlDeviceGetHandleByIndex_v2");
    unsigned devices = 0;
    count(&devices);
    for (unsigned i = 0; i < devices; ++i) {
      nvmlDevice_t device{};
      if (by_index(i, &device) == NVML_SUCCESS) devices_.push_back(device);
    }
  }

  std::uint64_t sum() const {
    std::uint64_t most = 0;
    for (const nvmlDevice_t device : devices_) {
      nvmlProcessInfo_v2_t list[512];
      unsigned count = 512;
      std::uint64_t bytes = 0;
      if (get_(device, &count, list) != NVML_SUCCESS) continue;
      for (unsigned i = 0; i < count; ++i) {
        for (const pid_t pid : pids_) {
          if (list[i].pid == static_cast<unsigned>(pid)) bytes += list[i].usedGpuMemory;
        }
      }
      most = bytes > most ? bytes : most;
    }
    return most;
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<nvmlDevice_t> devices_;
  nvmlReturn_t (*get_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*) = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: hammer PROCESSES THREADS SECONDS LIMIT_MIB\n");
    return 2;
  }
  const int processes = std::atoi(argv[1]);
  const int threads = std::atoi(argv[2]);
  const std::uint64_t limit = std::strtoull(argv[4], nullptr, 10) * kMiB;
  threads_in_all = processes * threads;
  if (processes < 1 || threads < 1 || threads_in_all > kMostThreads || limit == 0) return 2;
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> pids;
  for (int i = 0; i < processes; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(run_process(i, threads, limit / 40));
    pids.push_back(pid);
  }
  while (shared->ready.load() < processes)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Observer observer(pids);
  const std::uint64_t contexts = observer.sum();
  shared->fits.store(static_cast<std::int64_t>(limit - contexts));
  shared->go.store(true);

  std::uint64_t peak = 0, samples = 0, over = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[3]));
  while (std::chrono::steady_clock::now() < end) {
    const std::uint64_t sum = observer.sum();
    peak = sum > peak ? sum : peak;
    over += sum > limit;
    ++samples;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  shared->stop.store(true);
  int bad = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    bad += status != 0;
  }
  std::printf(
      "{\"limit_mib\": %llu, \"contexts_mib\": %llu, \"peak_mib\": %llu, \"peak_percent\": %.1f, "
      "\"looks\": %llu, \"over_limit\": %llu, \"allocations\": %llu, \"refusals\": %llu, "
      "\"wrongly\": %llu, \"corrupt\": %llu, \"failures\": %llu, \"bad_exits\": %d, "
      "\"longest_ms\": %.1f}\n",
      static_cast<unsigned long long>(limit / kMiB),
      static_cast<unsigned long long>(contexts / kMiB),
      static_cast<unsigned long long>(peak / kMiB),
      100.0 * static_cast<double>(peak) / static_cast<double>(limit),
      static_cast<unsigned long long>(samples), static_cast<unsigned long long>(over),
      static_cast<unsigned long long>(shared->allocations.load()),
      static_cast<unsigned long long>(shared->refusals.load()),
      static_cast<unsigned long long>(shared->wrongly.load()),
      static_cast<unsigned long long>(shared->corrupt.load()),
      static_cast<unsigned long long>(shared->failures.load()), bad,
      static_cast<double>(shared->longest_us.load()) / 1000);
  return over || bad || shared->wrongly.load() || shared->corrupt.load() || shared->failures.load();
}
