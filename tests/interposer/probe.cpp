// A CUDA program for the tests of libgpurota: one scenario in each run; exit code 0 if the driver
// answered as expected. Compiled twice: linked to libcuda, and looking up all functions at run time
// in the way that PROBE_LOOKUP selects.
#include "probe.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

CUcontext make_context(int ordinal = 0) {
  CUcontext context = nullptr;
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  EXPECT(cu.ctx_create(&context, 0, ordinal) == CUDA_SUCCESS);
  return context;
}

// Allocates until refused; returns how much was allocated.
size_t fill(size_t step, std::vector<CUdeviceptr>* kept = nullptr) {
  size_t had = 0;
  CUdeviceptr p = 0;
  while (cu.mem_alloc(&p, step) == CUDA_SUCCESS) {
    had += step;
    if (kept != nullptr) kept->push_back(p);
  }
  return had;
}

void wait_for_line() {
  char c = 0;
  do {
    if (::read(0, &c, 1) != 1) std::exit(3);
  } while (c != '\n');
}

void say(const char* word) {
  const ssize_t written = ::write(1, word, std::strlen(word));
  if (written < 0) std::exit(4);
}

// With a limit of 256 MiB, exactly that much can be allocated, and freed memory can be allocated
// again. cuMemGetInfo and cuDeviceTotalMem agree with the limit.
void exhaust() {
  make_context();
  size_t total = 0;
  size_t free_bytes = 0;
  EXPECT(cu.device_total(&total, 0) == CUDA_SUCCESS);
  EXPECT(total == 256 * kMiB);
  EXPECT(cu.mem_info(&free_bytes, &total) == CUDA_SUCCESS);
  EXPECT(total == 256 * kMiB);
  EXPECT(free_bytes == 256 * kMiB);
  std::vector<CUdeviceptr> kept;
  EXPECT(fill(8 * kMiB, &kept) == 256 * kMiB);
  EXPECT(cu.mem_info(&free_bytes, &total) == CUDA_SUCCESS);
  EXPECT(free_bytes == 0);
  for (CUdeviceptr p : kept) EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
  EXPECT(cu.mem_info(&free_bytes, &total) == CUDA_SUCCESS);
  EXPECT(free_bytes == 256 * kMiB);
  EXPECT(fill(64 * kMiB) == 256 * kMiB);
}

// Small allocations share blocks of 2 MiB; the charge is for the blocks.
void small() {
  make_context();
  std::vector<CUdeviceptr> kept;
  const size_t had = fill(64 << 10, &kept);
  EXPECT(had <= 256 * kMiB);
  EXPECT(had >= 250 * kMiB);
  for (CUdeviceptr p : kept) EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
  EXPECT(fill(2 * kMiB) == 256 * kMiB);
}

void pitch() {
  make_context();
  CUdeviceptr p = 0;
  size_t bytes = 0;
  EXPECT(cu.mem_alloc_pitch(&p, &bytes, 1000, 1000, 4) == CUDA_SUCCESS);
  EXPECT(bytes >= 1000);
  EXPECT(cu.mem_alloc_pitch(&p, &bytes, 1 << 20, 300, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cu.mem_alloc_pitch(&p, &bytes, SIZE_MAX / 2, 8, 4) != CUDA_SUCCESS);
}

void managed() {
  make_context();
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc_managed(&p, 200 * kMiB, 1) == CUDA_SUCCESS);
  CUdeviceptr q = 0;
  EXPECT(cu.mem_alloc_managed(&q, 100 * kMiB, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
  EXPECT(cu.mem_alloc_managed(&q, 100 * kMiB, 1) == CUDA_SUCCESS);
}

// A context holds 128 MiB or more of the limit of 256 MiB; destroying the context frees all of its
// memory.
void destroy_context() {
  for (int i = 0; i < 3; ++i) {
    CUcontext context = make_context();
    EXPECT(fill(16 * kMiB) >= 128 * kMiB);
    EXPECT(cu.ctx_destroy(context) == CUDA_SUCCESS);
  }
  CUcontext primary = nullptr;
  for (int i = 0; i < 3; ++i) {
    EXPECT(cu.primary_retain(&primary, 0) == CUDA_SUCCESS);
    EXPECT(cu.ctx_set_current(primary) == CUDA_SUCCESS);
    EXPECT(fill(16 * kMiB) >= 128 * kMiB);
    EXPECT((i % 2 == 0 ? cu.primary_release(0) : cu.primary_reset(0)) == CUDA_SUCCESS);
    if (i % 2 != 0) cu.primary_release(0);
  }
}

// Exits with 77, which the tests show as skipped, if the driver lacks the family.
void need(CUresult result) {
  if (result == CUDA_ERROR_NOT_SUPPORTED) std::exit(77);
  EXPECT(result == CUDA_SUCCESS);
}

CUmemAllocationProp on_device(int ordinal) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal};
  return prop;
}

// Memory that is created, mapped and released stays, with its charge, until it is unmapped.
void vmm() {
  make_context();
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle other = 0;
  CUdeviceptr base = 0;
  need(cu.mem_address_reserve(&base, 512 * kMiB, 0, 0, 0));
  EXPECT(cu.mem_create(&handle, 128 * kMiB, &prop, 0) == CUDA_SUCCESS);
  EXPECT(cu.mem_map(base, 128 * kMiB, 0, handle, 0) == CUDA_SUCCESS);
  EXPECT(cu.mem_release(handle) == CUDA_SUCCESS);
  EXPECT(cu.mem_create(&other, 192 * kMiB, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cu.mem_create(&other, 128 * kMiB, &prop, 0) == CUDA_SUCCESS);
  EXPECT(cu.mem_map(base + 128 * kMiB, 128 * kMiB, 0, other, 0) == CUDA_SUCCESS);
  EXPECT(cu.mem_release(other) == CUDA_SUCCESS);
  EXPECT(cu.mem_unmap(base, 256 * kMiB) == CUDA_SUCCESS);  // both mappings at once
  EXPECT(cu.mem_create(&other, 256 * kMiB, &prop, 0) == CUDA_SUCCESS);
  EXPECT(cu.mem_release(other) == CUDA_SUCCESS);
  CUmemAllocationProp host = prop;
  host.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  const CUresult result = cu.mem_create(&other, 512 * kMiB, &host, 0);
  EXPECT(result != CUDA_ERROR_OUT_OF_MEMORY);
}

// Freed memory stays in the pool and stays charged; it is released when other memory needs it.
void pool() {
  make_context();
  CUdeviceptr p = 0;
  need(cu.mem_alloc_async(&p, 128 * kMiB, nullptr));
  CUdeviceptr q = 0;
  EXPECT(cu.mem_alloc_async(&q, 160 * kMiB, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cu.mem_free_async(p, nullptr) == CUDA_SUCCESS);
  EXPECT(cu.ctx_synchronize() == CUDA_SUCCESS);
  EXPECT(cu.mem_alloc(&q, 256 * kMiB) == CUDA_SUCCESS);
  // Linear memory may also be freed in stream order.
  EXPECT(cu.mem_free_async(q, nullptr) == CUDA_SUCCESS);
  for (int i = 0; i < 1000; ++i) {
    EXPECT(cu.mem_alloc_async(&p, 96 * kMiB, nullptr) == CUDA_SUCCESS);
    EXPECT(cu.mem_free_async(p, nullptr) == CUDA_SUCCESS);
  }
}

void threads() {
  CUcontext context = make_context();
  std::vector<std::thread> all;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    all.emplace_back([context, seed] {
      EXPECT(cu.ctx_set_current(context) == CUDA_SUCCESS);
      unsigned state = seed;
      std::vector<CUdeviceptr> mine;
      for (int i = 0; i < 400; ++i) {
        state = state * 1664525u + 1013904223u;
        CUdeviceptr p = 0;
        if (mine.size() < 8 && cu.mem_alloc(&p, ((state >> 16) % 9000 + 1) << 10) == CUDA_SUCCESS) {
          mine.push_back(p);
        } else if (!mine.empty()) {
          EXPECT(cu.mem_free(mine.back()) == CUDA_SUCCESS);
          mine.pop_back();
        }
      }
      for (CUdeviceptr p : mine) EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
    });
  }
  for (std::thread& t : all) t.join();
  EXPECT(fill(2 * kMiB) == 256 * kMiB);
}

// The child of a tenant is a tenant of its own, and uses none of its parent's sockets.
void fork_before() {
  const pid_t child = ::fork();
  make_context();
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, 32 * kMiB) == CUDA_SUCCESS);
  if (child == 0) std::_Exit(0);
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child && status == 0);
}

// Connects, and then forks: the child must not send on its parent's connection.
void fork_after() {
  size_t total = 0;
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  EXPECT(cu.device_total(&total, 0) == CUDA_SUCCESS);
  EXPECT(total == 256 * kMiB);
  const pid_t child = ::fork();
  if (child == 0) {
    size_t again = 0;
    const CUresult result = cu.device_total(&again, 0);
    // An initialised driver does not work in a forked child; libgpurota must not be the reason.
    std::_Exit(result == CUDA_SUCCESS && again != 256 * kMiB ? 1 : 0);
  }
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child && status == 0);
  make_context();
  EXPECT(fill(32 * kMiB) == 256 * kMiB);
}

// Prints "ready" with 64 MiB held; after a line of input, continues to allocate.
void take_and_step(std::size_t first) {
  make_context();
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, first) == CUDA_SUCCESS);
  say("ready\n");
  wait_for_line();
  const CUresult result = cu.mem_alloc(&p, 128 * kMiB);
  say(result == CUDA_SUCCESS ? "yes\n" : result == CUDA_ERROR_OUT_OF_MEMORY ? "no\n" : "odd\n");
  wait_for_line();
}
void step() { take_and_step(64 * kMiB); }
void step_with_slack() { take_and_step(8 * kMiB); }  // of a grant of 64 MiB

// Frees succeed whatever the daemon does.
void free_after() {
  make_context();
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, 64 * kMiB) == CUDA_SUCCESS);
  say("ready\n");
  wait_for_line();
  EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
  EXPECT(cu.mem_alloc(&p, 32 * kMiB) == CUDA_SUCCESS);  // inside the headroom
  EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
  say("done\n");
}

void errno_preserved() {
  errno = 77;
  make_context();
  errno = 77;
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, 128 * kMiB) == CUDA_SUCCESS);
  EXPECT(errno == 77);
  EXPECT(cu.mem_alloc(&p, 512 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(errno == 77);
}

void environment_cleared() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  ::clearenv();
  make_context();
  EXPECT(fill(32 * kMiB) == 256 * kMiB);
}

// A program closes every descriptor, as daemons do, and opens descriptors of its own with the same
// numbers.
void descriptors_closed() {
  make_context();
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, 64 * kMiB) == CUDA_SUCCESS);
  int sockets[2];
  std::vector<int> ours;
  for (int fd = 600; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) continue;
    ::close(fd);
    EXPECT(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
    EXPECT(::dup2(sockets[0], fd) == fd);
    EXPECT(::send(sockets[1], "mine", 4, 0) == 4);
    ours.push_back(fd);
    ours.push_back(sockets[1]);
  }
  EXPECT(!ours.empty());
  EXPECT(cu.mem_alloc(&p, 128 * kMiB) == CUDA_SUCCESS);
  for (size_t i = 0; i < ours.size(); i += 2) {
    char text[8] = "";
    EXPECT(::recv(ours[i], text, sizeof(text), MSG_DONTWAIT) == 4);
    EXPECT(::recv(ours[i + 1], text, sizeof(text), MSG_DONTWAIT) < 0);
  }
}

void context_only() {
  CUcontext context = nullptr;
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  const CUresult result = cu.ctx_create(&context, 0, 0);
  say(result == CUDA_SUCCESS ? "yes\n" : result == CUDA_ERROR_OUT_OF_MEMORY ? "no\n" : "odd\n");
}

// The second GPU is outside the lease.
void foreign_gpu() {
  CUcontext context = nullptr;
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  EXPECT(cu.ctx_create(&context, 0, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cu.ctx_create(&context, 0, 0) == CUDA_SUCCESS);
  const CUmemAllocationProp prop = on_device(1);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT(cu.mem_create(&handle, 2 * kMiB, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

// Prints the UUID of each GPU in hex.
void uuids() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  CUuuid uuid{};
  for (int device = 0; cu.device_uuid(&uuid, device) == CUDA_SUCCESS; ++device) {
    for (char c : uuid.bytes) std::printf("%02x", static_cast<unsigned char>(c));
    std::printf("\n");
  }
}

// Without a lease, all answers are those of the driver.
void whole_gpu() {
  make_context();
  size_t total = 0;
  EXPECT(cu.device_total(&total, 0) == CUDA_SUCCESS);
  EXPECT(total > 4096 * kMiB);
  CUdeviceptr p = 0;
  EXPECT(cu.mem_alloc(&p, 512 * kMiB) == CUDA_SUCCESS);
  EXPECT(cu.mem_free(p) == CUDA_SUCCESS);
}

// The driver reports that the machine has no GPU.
void no_gpu() { EXPECT(cu.init(0) == CUDA_ERROR_NO_DEVICE); }

// A program that looks up the driver's functions and never initialises the driver.
void queries_only() {}

// The first attempt is refused, the second one is admitted.
void second_try() {
  no_gpu();
  say("refused\n");
  wait_for_line();
  exhaust();
}

// The environment of a child that executes another program.
void variables() {
  EXPECT(cu.init(0) == CUDA_SUCCESS);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const char* order = std::getenv("CUDA_DEVICE_ORDER");
  const char* other = std::getenv("PROBE_OTHER");
  std::printf("%s %s %s\n", visible != nullptr ? visible : "-", order != nullptr ? order : "-",
              other != nullptr ? other : "-");
  EXPECT(::setenv("CUDA_VISIBLE_DEVICES", "7", 1) == 0);  // libc can still change the environment
  EXPECT(std::getenv("CUDA_VISIBLE_DEVICES") == std::string_view("7"));
}

struct Scenario {
  const char* name;
  void (*run)();
};

constexpr Scenario kScenarios[] = {
    {"exhaust", exhaust},
    {"small", small},
    {"pitch", pitch},
    {"managed", managed},
    {"destroy_context", destroy_context},
    {"vmm", vmm},
    {"pool", pool},
    {"threads", threads},
    {"fork_before", fork_before},
    {"fork_after", fork_after},
    {"step", step},
    {"step_with_slack", step_with_slack},
    {"free_after", free_after},
    {"errno_preserved", errno_preserved},
    {"environment_cleared", environment_cleared},
    {"descriptors_closed", descriptors_closed},
    {"context_only", context_only},
    {"foreign_gpu", foreign_gpu},
    {"whole_gpu", whole_gpu},
    {"uuids", uuids},
    {"no_gpu", no_gpu},
    {"queries_only", queries_only},
    {"second_try", second_try},
    {"variables", variables},
};

}  // namespace

int main(int argc, char** argv) {
  find_functions();
  for (const Scenario& scenario : kScenarios) {
    if (argc != 2 || std::string_view(argv[1]) != scenario.name) continue;
    scenario.run();
    return 0;
  }
  std::fprintf(stderr, "probe: no such scenario\n");
  return 2;
}
