// A CUDA program whose memory is evicted and restored while it works: it must read what it wrote.
// One scenario in each run; prints errors. PROBE_BUFFERS: how many buffers, of 9 MiB on average,
// each of two threads holds (default: 6). PROBE_CONTEXTS: how many threads make and destroy
// contexts (default: 1). With two threads, a new context may get the handle of a context that the
// other thread destroys.
#include "tests/interposer/swap_probe.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::size_t any_size(Random& random) {
  switch (random() % 4) {
    case 0:
      return 4 + random() % 5000 * 4;  // shares a page
    case 1:
      return 64 * 1024 + random() % 1000 * 64;
    case 2:
      return kMiB + random() % 64 * std::size_t{4096};
    default:
      return (1 + random() % 70) * kMiB;  // more than one block
  }
}

// Allocates, fills, copies, checks and frees at random.
void use_linear(CUcontext context, unsigned seed) {
  Random random(seed);
  CUstream stream = nullptr;
  if (!OK(cuCtxSetCurrent(context)) || !OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return;
  const char* wanted = std::getenv("PROBE_BUFFERS");
  const std::size_t most = wanted != nullptr ? static_cast<std::size_t>(std::atoi(wanted)) : 6;
  std::vector<Buffer> buffers;
  while (goes_on()) {
    if (buffers.size() < most) {
      Buffer b{0, any_size(random), random()};
      if (GOT(cuMemAlloc_v2(&b.address, b.size))) {
        if (!OK(cuMemsetD32Async(b.address, b.value, b.size / 4, stream))) return;
        buffers.push_back(b);
      }
    }
    if (buffers.empty()) continue;
    Buffer& from = buffers[random() % buffers.size()];
    Buffer& to = buffers[random() % buffers.size()];
    if (!check(from, stream, random)) return;
    if (from.size == to.size || random() % 2 == 0) {
      to.value = random();
      if (!OK(cuMemsetD32Async(to.address, to.value, to.size / 4, stream))) return;
    }
    if (random() % 3 != 0) continue;
    // Work on a buffer that is still in flight must be over when the buffer is freed.
    const std::size_t gone = random() % buffers.size();
    if (!OK(cuMemsetD32Async(buffers[gone].address, 0, buffers[gone].size / 4, stream))) return;
    if (!OK(cuMemFree_v2(buffers[gone].address))) return;
    buffers.erase(buffers.begin() + static_cast<long>(gone));
  }
  for (const Buffer& b : buffers) OK(cuMemFree_v2(b.address));
  OK(cuStreamDestroy_v2(stream));
}

// Like use_linear, in stream order; occasionally destroys a stream with pending work.
void use_async(CUcontext context, unsigned seed) {
  Random random(seed);
  if (!OK(cuCtxSetCurrent(context))) return;
  while (goes_on()) {
    CUstream stream = nullptr;
    if (!OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return;
    for (int i = 0; i < 20 && goes_on(); ++i) {
      Buffer a{0, any_size(random) / 4 * 4, random()};
      Buffer b{0, a.size, a.value};
      if (!GOT(cuMemAllocAsync(&a.address, a.size, stream))) continue;
      if (!OK(cuMemsetD32Async(a.address, a.value, a.size / 4, stream))) return;
      if (!GOT(cuMemAllocAsync(&b.address, b.size, stream))) {
        if (!OK(cuMemFreeAsync(a.address, stream))) return;
        continue;
      }
      if (!OK(cuMemcpyDtoDAsync_v2(b.address, a.address, a.size, stream))) return;
      if (!OK(cuMemFreeAsync(a.address, stream))) return;
      if (!check(b, stream, random)) return;
      if (!OK(random() % 2 == 0 ? cuMemFree_v2(b.address) : cuMemFreeAsync(b.address, stream))) {
        return;
      }
    }
    if (!OK(cuStreamDestroy_v2(stream))) return;
  }
}

// Launches a captured graph repeatedly: its addresses never change.
void use_graph(CUcontext context, unsigned seed) {
  Random random(seed);
  CUstream stream = nullptr;
  if (!OK(cuCtxSetCurrent(context)) || !OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return;
  while (goes_on()) {
    Buffer a{0, 3 * kMiB, random()};
    Buffer b{0, 3 * kMiB, a.value};
    if (!GOT(cuMemAlloc_v2(&a.address, a.size))) continue;
    if (!GOT(cuMemAlloc_v2(&b.address, b.size))) {
      if (!OK(cuMemFree_v2(a.address))) return;
      continue;
    }
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    if (!OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)) ||
        !OK(cuMemsetD32Async(a.address, a.value, a.size / 4, stream))) {
      return;
    }
    // A turn may end during the sleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 15));
    if (!OK(cuMemcpyDtoDAsync_v2(b.address, a.address, a.size, stream)) ||
        !OK(cuStreamEndCapture(stream, &graph)) ||
        !OK(cuGraphInstantiateWithFlags(&exec, graph, 0))) {
      return;
    }
    for (int i = 0; i < 10 && goes_on(); ++i) {
      if (!OK(cuMemsetD32Async(a.address, 1, a.size / 4, stream)) ||
          !OK(cuMemsetD32Async(b.address, 2, b.size / 4, stream)) ||
          !OK(cuGraphLaunch(exec, stream)) || !check(b, stream, random)) {
        return;
      }
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    if (!OK(cuMemFree_v2(a.address)) || !OK(cuMemFree_v2(b.address))) return;
  }
  OK(cuStreamDestroy_v2(stream));
}

// Makes contexts and destroys them with memory in them; launches kernels in the default stream.
void use_contexts(unsigned seed) {
  Random random(seed);
  while (goes_on()) {
    WithContext with;
    if (with.context() == nullptr) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    CUfunction add = with.kernel("add_u32");
    for (int i = 0; i < 10 && goes_on(); ++i) {
      Buffer b{0, (1 + random() % 8) * kMiB, random()};
      if (!GOT(cuMemAlloc_v2(&b.address, b.size))) break;
      if (!OK(cuMemsetD32_v2(b.address, b.value, b.size / 4))) return;
      for (unsigned round = 0; round < 5; ++round) {
        unsigned by = random() % 1000;
        std::uint64_t count = b.size / 4;
        void* arguments[] = {&b.address, &by, &count};
        if (!OK(launch(add, nullptr, arguments))) return;
        b.value += by;
      }
      if (!check(b, nullptr, random)) return;
      if (i % 2 == 0 && !OK(cuMemFree_v2(b.address))) return;
    }
  }
}

// Memory of two GPUs, and copies from one to the other.
void use_two_gpus(CUcontext first, unsigned seed) {
  Random random(seed);
  CUcontext second = nullptr;
  if (!OK(cuCtxCreate_v2(&second, 0, 1))) return;
  while (goes_on()) {
    Buffer there{0, (1 + random() % 40) * kMiB, random()};
    Buffer here{0, there.size, there.value};
    if (!OK(cuCtxSetCurrent(second)) || !OK(cuMemAlloc_v2(&there.address, there.size)) ||
        !OK(cuMemsetD32_v2(there.address, there.value, there.size / 4)) ||
        !OK(cuCtxSetCurrent(first)) || !OK(cuMemAlloc_v2(&here.address, here.size)) ||
        !OK(cuMemsetD32_v2(here.address, 0, here.size / 4)) ||
        !OK(cuMemcpy(here.address, there.address, here.size)) || !check(here, nullptr, random)) {
      return;
    }
    if (!OK(cuMemFree_v2(here.address)) || !OK(cuMemFree_v2(there.address))) return;
  }
  OK(cuCtxDestroy_v2(second));
}

// Forks children that use nothing, and launches host functions that run while the gate is closed.
void fork_and_call(CUcontext context) {
  CUstream stream = nullptr;
  if (!OK(cuCtxSetCurrent(context)) || !OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) return;
  while (goes_on()) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(7);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WEXITSTATUS(status) != 7) g_wrong = true;
    int called = 0;
    const auto call = [](void* data) { ++*static_cast<int*>(data); };
    if (!OK(cuLaunchHostFunc(stream, call, &called)) || !OK(cuStreamSynchronize(stream))) return;
    SAME(static_cast<unsigned>(called), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  OK(cuStreamDestroy_v2(stream));
}

void wait_for_line() {
  char c = 0;
  while (::read(0, &c, 1) == 1 && c != '\n') {
  }
}

int torture(double seconds, unsigned seed, bool two_gpus) {
  const bool until_told = seconds == 0;
  g_end = Clock::now() +
          std::chrono::milliseconds(static_cast<long>(until_told ? 120000 : seconds * 1000));
  if (!OK(cuInit(0))) return 1;
  {
    const WithContext with;
    if (with.context() == nullptr) {
      say("no context");
      return 1;
    }
    std::vector<std::thread> threads;
    threads.emplace_back(use_linear, with.context(), seed);
    threads.emplace_back(use_linear, with.context(), seed + 1);
    threads.emplace_back(use_async, with.context(), seed + 2);
    threads.emplace_back(use_graph, with.context(), seed + 3);
    const char* const contexts = std::getenv("PROBE_CONTEXTS");
    for (int i = 0; i < (contexts == nullptr ? 1 : std::atoi(contexts)); ++i) {
      threads.emplace_back(use_contexts, seed + 4 + 3 * static_cast<unsigned>(i));
    }
    threads.emplace_back(use_vmm, with.context(), seed + 6);
    threads.emplace_back(fork_and_call, with.context());
    if (two_gpus) threads.emplace_back(use_two_gpus, with.context(), seed + 5);
    if (until_told) {
      wait_for_line();
      g_told = true;
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::printf("%llu checks\n", static_cast<unsigned long long>(g_checks.load()));
  if (g_wrong) return 1;
  say("done");
  wait_for_line();
  return 0;
}

// Checks the driver's answers about the program's memory, resident or not.
int answers() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  std::size_t free = 0, total = 0;
  OK(cuMemGetInfo_v2(&free, &total));
  SAME(static_cast<unsigned>(total / kMiB), 1024);
  SAME(static_cast<unsigned>(free / kMiB), 924);  // the context
  CUdeviceptr big = 0, small = 0, pitched = 0;
  std::size_t pitch = 0;
  OK(cuMemAlloc_v2(&big, 70 * kMiB + 4));
  OK(cuMemAlloc_v2(&small, 1000));
  OK(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 10, 4));
  SAME(static_cast<unsigned>(pitch), 1024);
  say("allocated");
  wait_for_line();
  CUdeviceptr base = 0;
  std::size_t size = 0;
  OK(cuMemGetAddressRange_v2(&base, &size, big + 65 * kMiB));
  if (base != big || size != 70 * kMiB + 4) g_wrong = true;
  OK(cuMemGetAddressRange_v2(&base, &size, small + 999));
  if (base != small || size != 1000) g_wrong = true;
  CUcontext context = nullptr;
  int device = -1;
  unsigned type = 0;
  OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, big));
  OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, small));
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pitched + pitch));
  if (context != with.context() || device != 0 || type != CU_MEMORYTYPE_DEVICE) g_wrong = true;
  OK(cuMemGetInfo_v2(&free, &total));
  SAME(static_cast<unsigned>(free / kMiB), 924 - 72 - 2);
  // The memory is freed while it is evicted, or resident.
  OK(cuMemFree_v2(big));
  OK(cuMemFree_v2(small));
  OK(cuMemFree_v2(pitched));
  if (cuMemFree_v2(big) == CUDA_SUCCESS) g_wrong = true;
  if (g_wrong) return 1;
  say("freed");
  wait_for_line();
  return 0;
}

// Prints the results of a call that waits at the gate, and of an allocation that waits for memory.
int stand() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  std::thread grows([&] {
    CUdeviceptr p = 0;
    cuCtxSetCurrent(with.context());
    std::printf("allocation: %s\n", code_name(cuMemAlloc_v2(&p, kMiB)).c_str());
  });
  void* host = nullptr;
  cuMemHostAlloc(&host, 4096, 0);
  const CUresult result = cuMemsetD8_v2(reinterpret_cast<CUdeviceptr>(host), 0, 16);
  grows.join();
  std::printf("submission: %s\n", code_name(result).c_str());
  say("end");
  return 0;
}

int capture_for(double seconds) {
  g_end = Clock::now() + std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  if (!OK(cuInit(0))) return 1;
  {
    const WithContext with;
    std::thread other(allocate_beside_captures, with.context());
    capture_per_thread();
    other.join();
  }
  if (g_wrong) return 1;
  say("done");
  wait_for_line();
  return 0;
}

// Submits a little work at a time, and pauses the CPU after each.
int sip(double seconds) {
  g_end = Clock::now() + std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  CUdeviceptr p = 0;
  if (!OK(cuMemAlloc_v2(&p, 4096)) || !OK(cuMemsetD8_v2(p, 0, 4096))) return 1;
  say("begun");
  while (goes_on()) {
    if (!OK(cuMemsetD32Async(p, 1, 4, nullptr)) || !OK(cuCtxSynchronize())) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  say("end");
  wait_for_line();
  return OK(cuMemFree_v2(p)) ? 0 : 1;
}

// Writes slightly different content each time, so that a lost write shows at once.
int overwrite(int times) {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  CUdeviceptr p = 0;
  if (!OK(cuMemAlloc_v2(&p, 4 * kMiB))) return 1;
  for (int i = 1; i <= times && !g_wrong; ++i) {
    unsigned read = 0;
    if (!OK(cuMemsetD32_v2(p, static_cast<unsigned>(i), kMiB)) ||
        !OK(cuMemcpyDtoH_v2(&read, p + 4 * kMiB - 4, 4)) || !SAME(read, static_cast<unsigned>(i))) {
      return 1;
    }
  }
  say("end");
  wait_for_line();
  return OK(cuMemFree_v2(p)) ? 0 : 1;
}

// Mapped memory outlives the contexts: it is freed without a context, or used again in the next
// one.
int orphan(bool frees) {
  if (!OK(cuInit(0))) return 1;
  Orphan orphan;
  {
    const WithContext with;
    if (!orphan.make()) return 1;
    say("made");
    wait_for_line();
  }
  say("alone");
  wait_for_line();
  if (frees && !orphan.free()) return 1;
  if (frees) say("freed");
  if (frees) wait_for_line();
  {
    const WithContext with;
    if (!frees && (!orphan.read_back() || !orphan.free())) return 1;
    say("looked");
    wait_for_line();
  }
  return g_wrong ? 1 : 0;
}

// Opens, for a while, an RDMA device with which the program's memory could be registered.
int with_rdma_device(const char* device) {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  Random random(1);
  const int fd = ::open(device, O_RDONLY | O_CLOEXEC);
  Buffer b{0, 70 * kMiB, 0x600df00d};
  if (fd < 0 || !OK(cuMemAlloc_v2(&b.address, b.size)) ||
      !OK(cuMemsetD32_v2(b.address, b.value, b.size / 4))) {
    return 1;
  }
  say("open");
  wait_for_line();
  if (!check(b, nullptr, random)) return 1;
  ::close(fd);
  say("closed");
  wait_for_line();
  if (!check(b, nullptr, random) || !OK(cuMemFree_v2(b.address))) return 1;
  say("end");
  wait_for_line();
  return 0;
}

// Tests memory that the program mapped itself.
int mapped() {
  if (!OK(cuInit(0))) return 1;
  const WithContext with;
  ask_of_vmm([] {
    say("allocated");
    wait_for_line();
  });
  if (g_wrong) return 1;
  say("freed");
  wait_for_line();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (!load_driver()) return 2;
  if (scenario == "torture")
    return torture(std::atof(argv[2]), static_cast<unsigned>(std::atoi(argv[3])), argc > 4);
  if (scenario == "answers") return answers();
  if (scenario == "stand") return stand();
  if (scenario == "mapped") return mapped();
  if (scenario == "rdma") return with_rdma_device(argv[2]);
  if (scenario == "orphan") return orphan(argc > 2);
  if (scenario == "capture_per_thread") return capture_for(std::atof(argv[2]));
  if (scenario == "overwrite") return overwrite(std::atoi(argv[2]));
  if (scenario == "sip") return sip(std::atof(argv[2]));
  if (scenario == "give_away") return give_away();
  if (scenario == "freed_is_free") return freed_is_free();
  if (scenario == "freed_behind_work") return freed_behind_work();
  if (scenario == "freed_by_a_stranger") return freed_by_a_stranger();
  if (scenario == "freed_in_another_stream") return freed_in_another_stream();
  if (scenario == "pool_figures") return pool_figures();
  if (scenario == "end_slowly") return end_slowly();
  return 2;
}
