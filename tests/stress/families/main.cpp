// families PROCESSES THREADS SECONDS LIMIT_MIB [SEED]: uses every family of device memory at
// random, under one limit, and models what should be charged.
//
// Run under `gpurota run --memory`. Threads do rounds of a fixed number of steps, each thread from
// dice of its own, so that the seed determines what every thread does. Between rounds all threads
// rest, and the model is compared with NVML's figure and with what cuMemGetInfo shows as used.
// Prints one JSON object:
//   over_limit   the number of samples in which NVML's sum was above the limit; must be 0 (kLateMiB
//                is allowed here too: the daemon charges memory that the driver takes by itself
//                only when the next samples see it, docs/design/memory.md)
//   wrongly      refusals of requests that fitted by the model; must be 0
//   difference   the largest in MiB between model, NVML and cuMemGetInfo while all rest; must be 0
//                (on a real GPU, kLateMiB is allowed for code and tables that the driver adds)
//   left         MiB that NVML or cuMemGetInfo show more than at the start, when all has been freed
#include "tests/stress/families/families.h"
#include "tests/stress/families/nvml.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::stress {
namespace {

constexpr int kSteps = 120;  // of each thread in a round
constexpr int kLateMiB = 64;
constexpr int kSample = 1, kContexts = 2, kEnd = 3;
constexpr auto kPause = std::chrono::microseconds(200);

struct Arguments {
  int processes, threads, seconds;
  std::uint64_t limit;
  unsigned seed;
};

// Memory that a real driver may allocate by itself, beyond what it held at the start.
std::int64_t late_bytes() {
  return is_simulated() ? 0 : kLateMiB * static_cast<std::int64_t>(kMiB);
}

std::int64_t in_mib(std::int64_t bytes) { return bytes / static_cast<std::int64_t>(kMiB); }

// Waits for the other threads, and until the parent has compared.
void meet() {
  const int round = shared->round.load();
  shared->arrived.fetch_add(1);
  while (shared->round.load() == round) std::this_thread::sleep_for(kPause);
}

void work(Process& process, const Arguments& arguments, int thread) {
  STRESS_MUST(cuCtxSetCurrent(thread % 2 == 0 ? process.primary : process.second));
  const int self = process.index * arguments.threads + thread;
  Account account(process.index, self);
  std::vector<std::unique_ptr<Family>> families;
  const char* only = ::getenv("STRESS_FAMILIES");  // bits that select families, for debugging
  unsigned long chosen = only != nullptr ? std::strtoul(only, nullptr, 2) : ~0UL;
  for (auto* make : {make_linear, make_vmm, make_pools, make_graphs, make_arrays}) {
    if ((chosen & 1) != 0) families.push_back(make(process, account));
    chosen >>= 1;
  }
  std::mt19937 random(arguments.seed * 7919 + static_cast<unsigned>(self));
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto which = random() % families.size();
      const auto choice = random(), size = random(), detail = random(), victim = random();
      families[which]->step({static_cast<std::uint32_t>(choice), static_cast<std::uint32_t>(size),
                             static_cast<std::uint32_t>(detail),
                             static_cast<std::uint32_t>(victim)});
    }
  };
  steps(kSteps / 4);  // makes the driver load what it otherwise loads later
  for (const auto& family : families) family->free_all();
  meet();
  while (!shared->stop.load()) {
    steps(kSteps);
    for (const auto& family : families) family->rest();
    meet();
  }
  for (const auto& family : families) family->free_all();
  families.clear();
  meet();
}

// Makes a context with memory in it, and destroys both.
void make_and_destroy_context() {
  CUcontext context = nullptr;
  if (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS) return;  // there may be no room for a context
  CUdeviceptr at = 0;
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR shape = {4096, 128, CU_AD_FORMAT_FLOAT, 1};
  for (int i = 0; i < 4; ++i) (void)cuMemAlloc_v2(&at, (3 << 20) + 5);
  (void)cuArrayCreate_v2(&array, &shape);
  STRESS_MUST(cuCtxDestroy_v2(context));
}

std::int64_t taken_by_view() {
  std::size_t free = 0, total = 0;
  STRESS_MUST(cuMemGetInfo_v2(&free, &total));
  return static_cast<std::int64_t>(total - free);
}

// The first thread of a process carries out the parent's orders.
void serve(const Process& process) {
  std::atomic<int>& order = shared->order[process.index];
  for (;;) {
    const int what = order.load();
    if (what == kEnd) return;
    if (what == kSample) shared->view.store(taken_by_view());
    if (what == kContexts) make_and_destroy_context();
    STRESS_MUST(cuCtxSetCurrent(process.primary));
    if (what != 0) order.store(0);
    std::this_thread::sleep_for(kPause);
  }
}

int run_process(int index, const Arguments& arguments) {
  Process process;
  process.index = index;
  process.largest = arguments.limit / 20;
  if (!load_driver() || cuInit(0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&process.primary, 0) != CUDA_SUCCESS ||
      cuCtxCreate_v2(&process.second, 0, 0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "process %d: no context\n", index);
    return 1;
  }
  STRESS_MUST(cuCtxSetCurrent(process.primary));
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.threads; ++i) {
    threads.emplace_back([&process, &arguments, i] { work(process, arguments, i); });
  }
  serve(process);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// The parent's checks.
class Judge {
 public:
  Judge(const Arguments& arguments, std::vector<pid_t> pids)
      : arguments_(arguments), pids_(pids), nvml_(std::move(pids)) {}

  // False if a process ended early.
  bool wait_for_all() {
    while (shared->arrived.load() < threads_in_all) {
      sample();
      for (const pid_t pid : pids_) {
        if (::waitpid(pid, nullptr, WNOHANG) != 0) return false;
      }
    }
    return true;
  }
  void go_on() {
    shared->arrived.store(0);
    shared->round.fetch_add(1);
  }
  void order(int process, int what) {
    shared->order[process].store(what);
    while (shared->order[process].load() != 0) sample();
  }
  void set_base() {
    wait_until_still();
    base_nvml_ = static_cast<std::int64_t>(nvml_.sum());
    base_view_ = view();
    const std::int64_t base = base_nvml_ > base_view_ ? base_nvml_ : base_view_;
    shared->fits.store(static_cast<std::int64_t>(arguments_.limit) - base - late_bytes());
  }
  // The largest difference, after the daemon has had time to sample.
  std::int64_t compare() {
    std::int64_t exact = 0, worst = 0;
    for (int i = 0; i < arguments_.processes; ++i) exact += shared->exact[i].load();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    do {
      const std::int64_t by_nvml = static_cast<std::int64_t>(nvml_.sum()) - base_nvml_ - exact;
      const std::int64_t by_view = view() - base_view_ - exact;
      worst = std::abs(by_nvml) > std::abs(by_view) ? by_nvml : by_view;
    } while (worst != 0 && std::chrono::steady_clock::now() < end);
    difference_ = std::abs(worst) > std::abs(difference_) ? worst : difference_;
    return worst;
  }
  int report(std::int64_t left, int bad_exits) const;

 private:
  std::int64_t view() {
    order(0, kSample);
    return shared->view.load();
  }
  void sample() {
    // Counts the threads that were inside a pool request when the sample began, and the threads
    // that entered one during the sample.
    const int entered = shared->entered_pools.load();
    int in_pools = shared->in_pools.load();
    const std::uint64_t sum = nvml_.sum();
    in_pools += shared->entered_pools.load() - entered;
    peak_ = sum > peak_ ? sum : peak_;
    over_ += sum > arguments_.limit + static_cast<std::uint64_t>(in_pools) * kPoolUnit +
                       static_cast<std::uint64_t>(late_bytes());
    ++samples_;
    std::this_thread::sleep_for(kPause);
  }
  // The daemon needs a second to accept what NVML shows.
  void wait_until_still() {
    const auto begun = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::steady_clock::now() - begun; };
    while (view() != static_cast<std::int64_t>(nvml_.sum()) && passed() < std::chrono::seconds(3)) {
    }
  }

  const Arguments& arguments_;
  std::vector<pid_t> pids_;
  Nvml nvml_;
  std::int64_t base_nvml_ = 0, base_view_ = 0, difference_ = 0;
  std::uint64_t peak_ = 0, samples_ = 0, over_ = 0;
};

int Judge::report(std::int64_t left, int bad_exits) const {
  std::uint64_t made = 0, refused = 0;
  std::printf("{\"seed\": %u, \"limit_mib\": %llu, \"base_mib\": %lld, \"peak_percent\": %.1f, ",
              arguments_.seed, static_cast<unsigned long long>(arguments_.limit / kMiB),
              static_cast<long long>(in_mib(base_nvml_)),
              100.0 * static_cast<double>(peak_) / static_cast<double>(arguments_.limit));
  for (int i = 0; i < kKinds; ++i) {
    std::printf("\"%s\": [%llu, %llu], ", kKindNames[i],
                static_cast<unsigned long long>(shared->made[i].load()),
                static_cast<unsigned long long>(shared->refused[i].load()));
    made += shared->made[i].load();
    refused += shared->refused[i].load();
  }
  std::printf(
      "\"rounds\": %d, \"made\": %llu, \"refused\": %llu, \"wrongly\": %llu, \"corrupt\": %llu, "
      "\"failures\": %llu, \"looks\": %llu, \"over_limit\": %llu, \"difference\": %.3f, "
      "\"left\": %.3f, \"bad_exits\": %d, \"problem\": \"%s\"}\n",
      shared->round.load() - 2, static_cast<unsigned long long>(made),
      static_cast<unsigned long long>(refused),
      static_cast<unsigned long long>(shared->wrongly.load()),
      static_cast<unsigned long long>(shared->corrupt.load()),
      static_cast<unsigned long long>(shared->failures.load()),
      static_cast<unsigned long long>(samples_), static_cast<unsigned long long>(over_),
      static_cast<double>(difference_) / static_cast<double>(kMiB),
      static_cast<double>(left) / static_cast<double>(kMiB), bad_exits, shared->first_problem);
  const std::int64_t late = late_bytes();
  const bool good = shared->wrongly.load() == 0 && shared->corrupt.load() == 0 &&
                    shared->failures.load() == 0 && over_ == 0 && bad_exits == 0 &&
                    std::abs(difference_) <= late && std::abs(left) <= late;
  if (!good)
    std::fprintf(stderr, "families: seed %u: %s\n", arguments_.seed, shared->first_problem);
  return good ? 0 : 1;
}

int run(const Arguments& arguments) {
  std::vector<pid_t> pids;
  for (int i = 0; i < arguments.processes; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run_process(i, arguments));
    pids.push_back(pid);
  }
  Judge judge(arguments, pids);
  const auto all_gone = [&] {
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    std::fprintf(stderr, "families: seed %u: a process ended early\n", arguments.seed);
    return 1;
  };
  if (!judge.wait_for_all()) return all_gone();
  judge.set_base();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(arguments.seconds);
  do {
    judge.go_on();
    if (!judge.wait_for_all()) return all_gone();
    for (int i = 0; i < arguments.processes; ++i) judge.order(i, kContexts);
    judge.compare();
  } while (std::chrono::steady_clock::now() < end);
  shared->stop.store(true);
  judge.go_on();
  if (!judge.wait_for_all()) return all_gone();
  const std::int64_t left = judge.compare();
  judge.go_on();
  for (int i = 0; i < arguments.processes; ++i) shared->order[i].store(kEnd);
  int bad = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    bad += status != 0;
  }
  return judge.report(left, bad);
}

}  // namespace
}  // namespace gpurota::stress

int main(int argc, char** argv) {
  using namespace gpurota::stress;  // NOLINT(google-build-using-namespace)
  if (argc < 5) {
    std::fprintf(stderr, "usage: families PROCESSES THREADS SECONDS LIMIT_MIB [SEED]\n");
    return 2;
  }
  const Arguments arguments = {std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]),
                               std::strtoull(argv[4], nullptr, 10) * kMiB,
                               argc > 5 ? static_cast<unsigned>(std::atoi(argv[5])) : 1};
  threads_in_all = arguments.processes * arguments.threads;
  if (arguments.processes < 1 || arguments.processes > kMostProcesses || arguments.threads < 1 ||
      threads_in_all > kMostThreads || arguments.limit == 0) {
    return 2;
  }
  shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return run(arguments);
}
