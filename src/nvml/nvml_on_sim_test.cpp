// NvmlProbe with the simulated driver's libnvidia-ml.so.1, found by the loader as the real one is.
// Run by ctest as `gpurota-sim h100-mig -- nvml_on_sim_test`.
#include "abi/cuda_abi.h"
#include "nvml/nvml_probe.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::nvml {
namespace {

constexpr Bytes kUsable = mib(81559 - 555);
constexpr Bytes kContext = mib(518);

std::vector<GpuInfo> read_gpus(NvmlProbe& probe) {
  auto gpus = probe.read_gpus();
  EXPECT_TRUE(gpus) << gpus.error().message;
  return gpus ? *gpus : std::vector<GpuInfo>();
}

// In a child: makes a context on `gpu`, allocates, says so and waits to be killed.
[[noreturn]] void hold_memory(const GpuUuid& gpu, std::size_t bytes, int say) {
  ::setenv("CUDA_VISIBLE_DEVICES", gpu.value.c_str(), 1);
  void* cuda = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) ::_exit(1);
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(::dlsym(cuda, "cuInit"));
  const auto retain = reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(
      ::dlsym(cuda, "cuDevicePrimaryCtxRetain"));
  const auto use = reinterpret_cast<CUresult (*)(CUcontext)>(::dlsym(cuda, "cuCtxSetCurrent"));
  const auto allocate =
      reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(::dlsym(cuda, "cuMemAlloc_v2"));
  CUcontext context = nullptr;
  CUdeviceptr pointer = 0;
  const bool held = init(0) == CUDA_SUCCESS && retain(&context, 0) == CUDA_SUCCESS &&
                    use(context) == CUDA_SUCCESS && allocate(&pointer, bytes) == CUDA_SUCCESS;
  if (::write(say, held ? "y" : "n", 1) == 1) ::pause();
  ::_exit(1);
}

class Holder {
 public:
  Holder(const GpuUuid& gpu, Bytes bytes) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) hold_memory(gpu, bytes.count(), ends[1]);
    char answer = 0;
    EXPECT_EQ(::read(ends[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y') << "the program could not allocate";
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { end(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

// Samples until `done` holds. The driver gives a killed process's memory back some time later.
template <class Done>
GpuSample sample_until(NvmlProbe& probe, const GpuInfo& gpu, Done done) {
  GpuSample sample;
  for (int i = 0; i < 1000; ++i) {
    sample = probe.read_sample(gpu);
    if (done(sample)) break;
    ::usleep(10000);
  }
  return sample;
}

void expect_held_and_given_back(NvmlProbe& probe, const GpuInfo& gpu) {
  Holder holder(gpu.uuid, gib(1));
  const GpuSample sample = probe.read_sample(gpu);
  EXPECT_EQ(sample.error, "");
  ASSERT_EQ(sample.processes.size(), 1u) << gpu.name;
  EXPECT_EQ(sample.processes[0].pid, holder.pid());
  EXPECT_FALSE(sample.processes[0].graphics);
  ASSERT_TRUE(sample.processes[0].used);
  EXPECT_GE(*sample.processes[0].used, gib(1) + kContext);
  EXPECT_GE(sample.used, *sample.processes[0].used);
  EXPECT_LT(sample.used, gib(1) + kContext + kContext);
  holder.end();
  const GpuSample after =
      sample_until(probe, gpu, [](const GpuSample& s) { return s.used == Bytes(); });
  EXPECT_EQ(after.used, Bytes()) << gpu.name;
  EXPECT_TRUE(after.processes.empty()) << gpu.name;
}

TEST(NvmlOnSim, ListsTheMachine) {
  NvmlProbe probe;
  const auto driver = probe.read_driver();
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_EQ(driver->driver_version, "580.159.01");
  EXPECT_EQ(driver->cuda_version, 13000);
  EXPECT_TRUE(driver->problems.empty());
  const auto gpus = read_gpus(probe);
  ASSERT_EQ(gpus.size(), 5u);
  EXPECT_TRUE(gpus[0].mig_enabled);
  EXPECT_EQ(gpus[0].memory, kUsable);
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(gpus[i].parent, gpus[0].uuid);
    EXPECT_EQ(gpus[i].index, static_cast<int>(i) - 1);
    EXPECT_EQ(gpus[i].uuid.value.substr(0, 4), "MIG-");
    EXPECT_TRUE(uuid_bytes(gpus[i].uuid));
    EXPECT_LE(gpus[i].memory, mib(40448));
  }
  EXPECT_EQ(gpus[4].index, 1);
  EXPECT_EQ(gpus[4].pci, "00000000:43:00.0");
  EXPECT_EQ(gpus[4].compute_major, 9);
  EXPECT_FALSE(probe.read_settings(gpus[4]).empty());
}

TEST(NvmlOnSim, ReadsFiguresOfABoardButNotOfAMigInstance) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  const GpuFigures figures = probe.read_figures(gpus[4], true);
  EXPECT_EQ(figures.power_limit_mw, 700'000);
  EXPECT_GT(figures.power_mw.value_or(0), 0);
  EXPECT_LT(figures.temperature.value_or(1000), figures.slowdown_temperature.value_or(0));
  EXPECT_GT(figures.sm_clock_mhz.value_or(0), 0);
  EXPECT_EQ(figures.clock_limits, 0u) << "idle is no limit";
  EXPECT_EQ(figures.ecc_uncorrected, 0u);
  EXPECT_EQ(figures.xid_errors, 0u);
  EXPECT_EQ(figures.processes, std::vector<GpuFigures::ProcessLoad>());
  EXPECT_FALSE(probe.read_figures(gpus[4], false).processes);
  GpuFigures nothing;
  nothing.processes.emplace();
  EXPECT_EQ(probe.read_figures(gpus[1], true), nothing);
}

TEST(NvmlOnSim, SeesAProcessAndItsMemoryAppearAndDisappear) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  ASSERT_EQ(gpus.size(), 5u);
  expect_held_and_given_back(probe, gpus[4]);
}

TEST(NvmlOnSim, ProcessOnAMigInstanceIsNotOnItsNeighbour) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  ASSERT_EQ(gpus.size(), 5u);
  expect_held_and_given_back(probe, gpus[2]);
  const Holder holder(gpus[2].uuid, gib(1));
  EXPECT_TRUE(probe.read_sample(gpus[1]).processes.empty());
  EXPECT_EQ(probe.read_sample(gpus[3]).used, Bytes());
}

TEST(NvmlOnSim, ALostGpuIsAnErrorOfItsSample) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  ASSERT_EQ(gpus.size(), 5u);
  const std::string set =
      std::string("'") + std::getenv("GPUROTA_SIM_PROGRAM") + "' set gpu4.lost=";
  ASSERT_EQ(std::system((set + "1").c_str()), 0);
  EXPECT_NE(probe.read_sample(gpus[4]).error.find("lost"), std::string::npos);
  EXPECT_EQ(probe.read_sample(gpus[1]).error, "");
  EXPECT_EQ(probe.read_driver()->problems.size(), 1u);
  ASSERT_EQ(std::system((set + "0").c_str()), 0);
  EXPECT_EQ(probe.read_sample(gpus[4]).error, "");
}

// Needs another machine, a100x8-pcie, on which ctest runs only this test.
TEST(NvmlOnSim, DISABLED_ReadsTheLinksOfPairsOnTwoNodes) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  ASSERT_EQ(gpus.size(), 8u);
  const auto links = probe.read_links(gpus);
  EXPECT_EQ(links.size(), 28u);
  const Topology topology(links);
  const auto between = [&](std::size_t a, std::size_t b) {
    return topology.between(gpus[a].uuid, gpus[b].uuid);
  };
  EXPECT_EQ(between(0, 1), Closeness::kNvlink);
  EXPECT_EQ(between(7, 6), Closeness::kNvlink);
  EXPECT_EQ(between(1, 2), Closeness::kSameNode);
  EXPECT_EQ(between(3, 4), Closeness::kAcrossNodes);
}

// Moves this process into a new group of the simulated tree.
std::string make_group(const std::string& name) {
  const char* machine = ::getenv("GPUROTA_SIM_DIR");
  const std::string tree = std::string(machine ? machine : ".") + "/cgroup";
  (void)::mkdir(tree.c_str(), 0755);
  (void)::mkdir((tree + name).c_str(), 0755);
  std::ofstream(tree + name + "/cgroup.procs") << ::getpid() << "\n";
  return tree + name;
}

// On the machine demo-r615.
TEST(NvmlOnSim, DISABLED_LimitsControlGroups) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  const std::string group = make_group("/a");
  EXPECT_EQ(probe.set_memory_limit(gpus[0], group + "/none", gib(1)).error().code, Code::kGone);
  ASSERT_TRUE(probe.set_memory_limit(gpus[0], group, gib(1)));
  EXPECT_EQ(probe.read_memory_limits(gpus[0], group)->hard, gib(1));
  EXPECT_EQ(probe.read_memory_limits(gpus[1], group)->hard, std::nullopt);
  EXPECT_EQ(probe.read_gpus()->front().memory, gib(1));  // this process is in the group
  EXPECT_NONFATAL_FAILURE(Holder(gpus[0].uuid, gib(1)), "could not allocate");
  {
    Holder holder(gpus[0].uuid, mib(512));
    EXPECT_GE(probe.read_memory_limits(gpus[0], group)->used, mib(512));
    EXPECT_NONFATAL_FAILURE(Holder(gpus[0].uuid, mib(512)), "could not allocate");
  }
  ASSERT_TRUE(probe.set_memory_limit(gpus[0], group, std::nullopt));
  EXPECT_EQ(probe.read_memory_limits(gpus[0], group)->hard, std::nullopt);
  Holder holder(gpus[0].uuid, gib(1));
  std::filesystem::remove_all(std::filesystem::path(group).parent_path());
}

TEST(NvmlOnSim, AnOlderDriverLimitsNoControlGroups) {
  NvmlProbe probe;
  const auto gpus = read_gpus(probe);
  EXPECT_EQ(probe.read_memory_limits(gpus[4], "/").error().code, Code::kUnavailable);
  EXPECT_EQ(probe.set_memory_limit(gpus[4], "/", gib(1)).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace gpurota::nvml
