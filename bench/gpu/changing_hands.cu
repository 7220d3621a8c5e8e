// Measures copies between a GPU and pinned host memory while the GPU's memory changes hands.
//
// usage: changing_hands [SECONDS [SLEEPERS]]
// Two processes copy at the same time, one out of the GPU, one into it, in blocks of 64 MiB of
// which six are under way. In the cells "is released", the first process unmaps and releases each
// block when it has been copied. In the cells "is made", the second process creates and maps each
// block before its copy. Programs in turns have to do both. SLEEPERS further processes have a
// context and 300 MiB, and do nothing. Prints GiB/s of both processes.
//
//     nvcc -O2 -o changing_hands changing_hands.cu -lcuda
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t kBlock = size_t{64} << 20;
constexpr size_t kPinned = size_t{32} << 20;  // pinned at a time
constexpr size_t kBlocks = 100;
constexpr size_t kUnderWay = 6;

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", call, result);
  exit(1);
}
#define CHECK(call) check(call, #call)

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Copier {
 public:
  Copier(bool out, bool changing) : out_(out), changing_(changing) {
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device_, 0));
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, device_));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    for (CUevent& event : events_) CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (char*& piece : host_) {
      void* memory =
          mmap(nullptr, kPinned, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) exit(1);
      madvise(memory, kPinned, MADV_HUGEPAGE);
      memset(memory, 1, kPinned);
      CHECK(cuMemHostRegister(memory, kPinned, CU_MEMHOSTREGISTER_PORTABLE));
      piece = static_cast<char*>(memory);
    }
    CHECK(cuMemAddressReserve(&address_, kBlock * kBlocks, 0, 0, 0));
    if (out || !changing) make_all();
  }

  // Returns GiB/s. The time in which memory is made ready for the next pass is not counted.
  double run(double seconds) {
    double spent = 0;
    size_t copied = 0;
    for (const double end = now() + seconds; now() < end; copied += kBlocks) {
      const double begun = now();
      pass();
      spent += now() - begun;
      if (changing_ && out_) make_all();
      for (size_t i = 0; changing_ && !out_ && i < kBlocks; ++i) drop(i);
    }
    return static_cast<double>(copied * kBlock) / spent / (size_t{1} << 30);
  }

 private:
  CUdeviceptr at(size_t block) const { return address_ + block * kBlock; }

  void make(size_t block) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    CUmemAccessDesc access{};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK(cuMemCreate(&handles_[block], kBlock, &prop, 0));
    CHECK(cuMemMap(at(block), kBlock, 0, handles_[block], 0));
    CHECK(cuMemSetAccess(at(block), kBlock, &access, 1));
  }
  void make_all() {
    for (size_t i = 0; i < kBlocks; ++i) make(i);
  }
  void drop(size_t block) {
    CHECK(cuMemUnmap(at(block), kBlock));
    CHECK(cuMemRelease(handles_[block]));
  }

  void begin(size_t block) {
    if (changing_ && !out_) make(block);
    for (size_t part = 0; part < kBlock / kPinned; ++part) {
      char* host = host_[block * (kBlock / kPinned) + part];
      const CUdeviceptr gpu = at(block) + part * kPinned;
      CHECK(out_ ? cuMemcpyDtoHAsync(host, gpu, kPinned, stream_)
                 : cuMemcpyHtoDAsync(gpu, host, kPinned, stream_));
    }
    CHECK(cuEventRecord(events_[block % kUnderWay], stream_));
  }
  void finish(size_t block) {
    CHECK(cuEventSynchronize(events_[block % kUnderWay]));
    if (changing_ && out_) drop(block);
  }
  void pass() {
    for (size_t i = 0; i < kBlocks + kUnderWay - 1; ++i) {
      if (i < kBlocks) begin(i);
      if (i + 1 >= kUnderWay) finish(i + 1 - kUnderWay);
    }
  }

  const bool out_;
  const bool changing_;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  CUevent events_[kUnderWay] = {};
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle handles_[kBlocks] = {};
  char* host_[kBlocks * kBlock / kPinned] = {};
};

// A child reports when it is ready, begins when all children are ready, and then reports its rate.
struct Child {
  Child(bool out, bool changing, double seconds) {
    int up[2];
    int down[2];
    if (pipe(up) != 0 || pipe(down) != 0) exit(1);
    pid = fork();
    if (pid == 0) {
      Copier copier(out, changing);
      char byte = 'r';
      if (write(up[1], &byte, 1) != 1 || read(down[0], &byte, 1) != 1) exit(1);
      const double rate = copier.run(seconds);
      _exit(write(up[1], &rate, sizeof(rate)) == sizeof(rate) ? 0 : 1);
    }
    close(up[1]);
    from = up[0];
    to = down[1];
  }
  void wait_ready() const {
    char byte = 0;
    if (read(from, &byte, 1) != 1) exit(1);
  }
  void begin() const {
    if (write(to, "g", 1) != 1) exit(1);
  }
  double rate() const {
    double value = 0;
    if (read(from, &value, sizeof(value)) != sizeof(value)) exit(1);
    return value;
  }
  pid_t pid;
  int from;
  int to;
};

constexpr size_t kSleeperMemory = size_t{300} << 20;

// Returns the process once it has its context and its memory.
pid_t start_sleeper() {
  int up[2];
  if (pipe(up) != 0) exit(1);
  const pid_t pid = fork();
  char byte = 'r';
  if (pid == 0) {
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc(&memory, kSleeperMemory));
    if (write(up[1], &byte, 1) != 1) exit(1);
    for (;;) pause();
  }
  close(up[1]);
  if (read(up[0], &byte, 1) != 1) exit(1);
  close(up[0]);
  return pid;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 3.0;
  std::vector<pid_t> sleepers(argc > 2 ? atoi(argv[2]) : 0);
  for (pid_t& sleeper : sleepers) sleeper = start_sleeper();
  printf("| memory on the GPU | out of it | into it |\n|---|---|---|\n");
  const struct {
    bool out_changes, in_changes;
    const char* name;
  } cases[] = {{false, false, "stays"},
               {true, false, "is released"},
               {false, true, "is made"},
               {true, true, "is released and made"}};
  for (const auto& each : cases) {
    const Child out(true, each.out_changes, seconds);
    const Child in(false, each.in_changes, seconds);
    out.wait_ready();
    in.wait_ready();
    out.begin();
    in.begin();
    printf("| %s | %.1f GiB/s |", each.name, out.rate());
    printf(" %.1f GiB/s |\n", in.rate());
    fflush(stdout);
    for (const Child* child : {&out, &in}) waitpid(child->pid, nullptr, 0);
  }
  for (const pid_t sleeper : sleepers) kill(sleeper, SIGKILL);
}
