// A CUDA program such as a user might have, independent of gpurota. Used by the demo and by the
// end-to-end tests, on the simulated driver and on real ones.
//
//   info                    what the driver reports about the GPUs: name, size, free memory
//   hold MIB                allocates, prints that, then waits for a signal
//   greedy MIB [LIMIT]      allocates piece by piece until refused (or until it holds LIMIT MiB),
//                           frees one piece, allocates it again, then waits for a signal
//   compute MIB SECONDS     fills, adds to and checks this much memory repeatedly
//
// Exit codes: 0; 1 a wrong result; 2 wrong arguments; 3 an error of the driver.

#include "driver.h"
#include "kernels.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <unistd.h>

namespace {

using demo::check;
using demo::driver;

constexpr std::size_t kMiB = std::size_t{1} << 20;

void use_first_gpu() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(driver().init(0), "cuInit");
  check(driver().device_get(&device, 0), "cuDeviceGet");
  check(driver().context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver().context_set(context), "cuCtxSetCurrent");
}

// Waits for a signal. Flushes first, so that the starting program sees the line above at once.
void wait_to_be_ended() {
  (void)std::fflush(stdout);
  for (;;) (void)pause();
}

int info() {
  int count = 0;
  check(driver().init(0), "cuInit");
  check(driver().device_count(&count), "cuDeviceGetCount");
  std::printf("gpus=%d\n", count);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    char name[128] = "";
    std::size_t size = 0;
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    check(driver().device_get(&device, i), "cuDeviceGet");
    check(driver().device_name(name, sizeof name, device), "cuDeviceGetName");
    check(driver().device_total(&size, device), "cuDeviceTotalMem");
    check(driver().context_retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(driver().context_set(context), "cuCtxSetCurrent");
    check(driver().mem_info(&free_bytes, &total), "cuMemGetInfo");
    std::printf("gpu=%d name=\"%s\" size=%zu total=%zu free=%zu\n", i, name, size, total,
                free_bytes);
  }
  return 0;
}

int hold(std::size_t mib) {
  use_first_gpu();
  CUdeviceptr memory = 0;
  check(driver().mem_alloc(&memory, mib * kMiB), "cuMemAlloc");
  check(driver().set_words(memory, 1, kMiB / 4), "cuMemsetD32");
  std::printf("holding %zu MiB\n", mib);
  wait_to_be_ended();
  return 0;
}

int greedy(std::size_t piece_mib, std::size_t limit_mib) {
  use_first_gpu();
  std::vector<CUdeviceptr> pieces;
  CUresult last = CUDA_SUCCESS;
  while (pieces.size() * piece_mib < limit_mib) {
    CUdeviceptr piece = 0;
    last = driver().mem_alloc(&piece, piece_mib * kMiB);
    if (last != CUDA_SUCCESS) break;
    pieces.push_back(piece);
  }
  if (last != CUDA_SUCCESS) {
    std::printf("refused at %zu MiB: %s\n", pieces.size() * piece_mib, demo::error_name(last));
  }
  if (!pieces.empty()) {
    check(driver().mem_free(pieces.back()), "cuMemFree");
    check(driver().mem_alloc(&pieces.back(), piece_mib * kMiB), "cuMemAlloc after the refusal");
  }
  std::printf("goes on with %zu MiB\n", pieces.size() * piece_mib);
  wait_to_be_ended();
  return 0;
}

class Computer {
 public:
  explicit Computer(std::size_t bytes) : words_(bytes / sizeof(std::uint64_t)) {
    CUmodule module = nullptr;
    check(driver().module_load(&module, kKernels), "cuModuleLoadData");
    check(driver().module_function(&fill_, module, "fill_u32"), "cuModuleGetFunction");
    check(driver().module_function(&add_, module, "add_u32"), "cuModuleGetFunction");
    check(driver().module_function(&checksum_, module, "checksum_u64"), "cuModuleGetFunction");
    check(driver().mem_alloc(&data_, words_ * sizeof(std::uint64_t)), "cuMemAlloc");
    check(driver().mem_alloc(&sum_, sizeof(std::uint64_t)), "cuMemAlloc");
  }

  // Whether the GPU computes the same fill, sum and checksum as the CPU.
  bool round(std::uint32_t value) {
    std::uint64_t count = words_ * 2;
    std::uint32_t more = value / 3 + 1;
    void* fill_arguments[] = {&data_, &value, &count};
    launch(fill_, fill_arguments);
    void* add_arguments[] = {&data_, &more, &count};
    launch(add_, add_arguments);
    check(driver().set_words(sum_, 0, 2), "cuMemsetD32");
    void* checksum_arguments[] = {&data_, &words_, &sum_};
    launch(checksum_, checksum_arguments);
    std::uint64_t got = 0;
    check(driver().copy_to_host(&got, sum_, sizeof got), "cuMemcpyDtoH");
    return got == expected(value + more);
  }

 private:
  void launch(CUfunction function, void** arguments) {
    check(driver().launch(function, 64, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
          "cuLaunchKernel");
  }

  // The sum of (d + i)(2 i + 1) over all words i, if every 32-bit word is `word`.
  std::uint64_t expected(std::uint32_t word) const {
    const std::uint64_t d = std::uint64_t{word} << 32 | word;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < words_; ++i) sum += (d + i) * (2 * i + 1);
    return sum;
  }

  std::uint64_t words_;
  CUfunction fill_ = nullptr;
  CUfunction add_ = nullptr;
  CUfunction checksum_ = nullptr;
  CUdeviceptr data_ = 0;
  CUdeviceptr sum_ = 0;
};

int compute(std::size_t mib, long seconds) {
  use_first_gpu();
  Computer computer(mib * kMiB);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::uint32_t rounds = 0;
  std::uint32_t wrong = 0;
  auto said = std::chrono::steady_clock::time_point();
  for (auto now = std::chrono::steady_clock::now(); now < end;
       now = std::chrono::steady_clock::now()) {
    wrong += computer.round(rounds * 7919) ? 0 : 1;
    ++rounds;
    if (now - said < std::chrono::seconds(1)) continue;
    said = now;
    std::printf("round %u, %u wrong\n", rounds, wrong);
    (void)std::fflush(stdout);
  }
  std::printf("done: %u rounds, %u wrong\n", rounds, wrong);
  return wrong == 0 && rounds > 0 ? 0 : 1;
}

std::size_t number(const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value == 0) {
    std::fprintf(stderr, "'%s' is not a number above 0\n", text);
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const char* command = argc > 1 ? argv[1] : "";
  if (std::strcmp(command, "info") == 0 && argc == 2) return info();
  if (std::strcmp(command, "hold") == 0 && argc == 3) return hold(number(argv[2]));
  if (std::strcmp(command, "greedy") == 0 && (argc == 3 || argc == 4)) {
    return greedy(number(argv[2]), argc == 4 ? number(argv[3]) : SIZE_MAX);
  }
  if (std::strcmp(command, "compute") == 0 && argc == 4) {
    return compute(number(argv[2]), static_cast<long>(number(argv[3])));
  }
  std::fprintf(stderr,
               "usage: gpu_program info | hold MIB | greedy MIB [LIMIT] | compute MIB SECONDS\n");
  return 2;
}
