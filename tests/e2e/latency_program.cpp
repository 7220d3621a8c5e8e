// Programs for the tests of latency classes and of shares of the compute time.
//
//   latency_program serve HOW [MIB]
//                                submits work, waits for it 30 ms later, has no work for 2 ms, and
//                                begins again. How it waits: "stream", for the stream; "copy", by
//                                a copy to the host from the default stream; "event", for an event
//                                in a second stream that waits for the first
//   latency_program work COUNT [MIB]
//                                submits COUNT times, every millisecond, and prints how many
//                                milliseconds the longest submission took
//                                MIB of memory; a page without it
//
//   latency_program kernels HOW MICROSECONDS SECONDS
//                                runs kernels of this length, one after the other, for this
//                                time, and prints how many. How it waits: "each", for each kernel;
//                                "batch", for 20 of them; "never", only at the end, and launches
//                                them at the speed at which they run
//
// All print "ready" once they have memory, and serve until they are killed.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <dlfcn.h>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void* g_driver = nullptr;

template <class Function>
Function find(const char* name) {
  void* found = ::dlsym(g_driver, name);
  if (found == nullptr) std::exit(2);
  return reinterpret_cast<Function>(found);
}

void check(int result) {
  if (result == 0) return;
  std::fprintf(stderr, "latency_program: error %d\n", result);
  std::exit(1);
}

std::uint64_t g_memory = 0;
void* g_stream = nullptr;
void* g_second = nullptr;
void* g_event = nullptr;

void make_memory(std::size_t bytes) {
  g_driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == nullptr) std::exit(2);
  void* context = nullptr;
  check(find<int (*)(unsigned)>("cuInit")(0));
  check(find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0));
  check(find<int (*)(void*)>("cuCtxSetCurrent")(context));
  check(find<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&g_memory, bytes));
  // The first stream is a blocking one, so the default stream waits for it.
  check(find<int (*)(void**, unsigned)>("cuStreamCreate")(&g_stream, 0));
  check(find<int (*)(void**, unsigned)>("cuStreamCreate")(&g_second, 1));
  check(find<int (*)(void**, unsigned)>("cuEventCreate")(&g_event, 2));
  std::printf("ready\n");
  std::fflush(stdout);
}

void submit() {
  using Memset = int (*)(std::uint64_t, unsigned, std::size_t, void*);
  static const auto memset_async = find<Memset>("cuMemsetD32Async");
  check(memset_async(g_memory, 1, 1024, g_stream));
}

void* find_spin_kernel() {
  static constexpr char kImage[] =
      ".version 7.0\n.target sm_50\n.address_size 64\n"
      ".visible .entry spin_us(.param .u64 microseconds) { ret; }\n";
  void *module = nullptr, *kernel = nullptr;
  check(find<int (*)(void**, const void*)>("cuModuleLoadData")(&module, kImage));
  check(
      find<int (*)(void**, void*, const char*)>("cuModuleGetFunction")(&kernel, module, "spin_us"));
  return kernel;
}

void launch(void* kernel, std::uint64_t microseconds) {
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void*, void**, void**);
  static const auto launch_kernel = find<Launch>("cuLaunchKernel");
  void* arguments[] = {&microseconds};
  check(launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, g_stream, arguments, nullptr));
}

void wait_for_stream() { check(find<int (*)(void*)>("cuStreamSynchronize")(g_stream)); }

void copy_to_host() {
  char bytes[64];
  check(find<int (*)(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(bytes, g_memory,
                                                                            sizeof bytes));
}

void wait_for_event() {
  const auto record = find<int (*)(void*, void*)>("cuEventRecord");
  check(record(g_event, g_stream));
  check(find<int (*)(void*, void*, unsigned)>("cuStreamWaitEvent")(g_second, g_event, 0));
  check(record(g_event, g_second));
  check(find<int (*)(void*)>("cuEventSynchronize")(g_event));
}

[[noreturn]] void serve(void (*wait)()) {
  for (;;) {
    submit();
    std::this_thread::sleep_for(milliseconds(30));
    wait();
    std::this_thread::sleep_for(milliseconds(2));
  }
}

void work(int count) {
  Clock::duration longest{};
  for (int i = 0; i < count; ++i) {
    const auto begun = Clock::now();
    submit();
    longest = std::max(longest, Clock::now() - begun);
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::printf("%ld\n",
              static_cast<long>(std::chrono::duration_cast<milliseconds>(longest).count()));
}

void run_kernels(std::string_view how, std::uint64_t microseconds, int seconds) {
  void* const kernel = find_spin_kernel();
  const int at_once = how == "each" ? 1 : how == "batch" ? 20 : 1 << 30;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  int count = 0;
  while (Clock::now() < end) {
    launch(kernel, microseconds);
    if (++count % at_once == 0) wait_for_stream();
    if (how == "never") std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  wait_for_stream();
  std::printf("%d\n", count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool sized = argc == 4;
  make_memory(sized ? static_cast<std::size_t>(std::atoi(argv[3])) << 20 : 4096);
  const std::string_view how = argc >= 3 ? argv[2] : "";
  if (std::strcmp(argv[1], "serve") == 0) {
    serve(how == "copy" ? copy_to_host : how == "event" ? wait_for_event : wait_for_stream);
  }
  if ((argc == 3 || sized) && std::strcmp(argv[1], "work") == 0) work(std::atoi(argv[2]));
  if (argc == 5 && std::strcmp(argv[1], "kernels") == 0) {
    run_kernels(argv[2], static_cast<std::uint64_t>(std::atoi(argv[3])), std::atoi(argv[4]));
  }
}
