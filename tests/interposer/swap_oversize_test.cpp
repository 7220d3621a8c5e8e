// A program with one and a half times the memory that its lease has on the GPU: the rest is in host
// memory, and every byte stays as written, even during turns.
#include "fixture.h"
#include "swap_daemon.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace gpurota::interposer_test {
namespace {

constexpr std::uint64_t kContext = 100 * kMiB;
constexpr std::uint64_t kOnGpu = 96 * kMiB;  // beside the context
constexpr std::uint64_t kInHost = 48 * kMiB;

class Oversize : public InterposerTest {
 protected:
  void SetUp() override {
    if (std::getenv("GPUROTA_FOREIGN") != nullptr) GTEST_SKIP() << "not under emulation";
    InterposerTest::SetUp();
    daemon_.reset();
  }

  void start_swap_daemon(const SwapBehaviour& behaviour) {
    swap_.reset();
    const std::vector<FakeGpu> gpus = {{uuids_[0], kContext + kOnGpu}};
    swap_ = std::make_unique<SwapDaemon>(socket_path(), gpus, behaviour);
  }
  void start(const SwapBehaviour& behaviour) {
    start_swap_daemon(behaviour);
    program_ = std::make_unique<Program>(
        std::vector<std::string>{foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE,
                                 "--", foreign(PROBE_OVERSIZE)},
        lease());
  }
  std::string read_until(const std::string& last) {
    std::string said;
    for (std::string line; !(line = program_->read_line()).empty();) {
      if (line == last) return said;
      said += line + "\n";
    }
    return said + "(ended)";
  }
  void end() {
    program_->write_line("");
    EXPECT_EQ(read_until("checked"), "");
    program_->write_line("");
    EXPECT_EQ(read_until("done"), "");
    EXPECT_EQ(program_->wait(), 0);
    EXPECT_EQ(swap_->bad(), "");
  }

  std::unique_ptr<SwapDaemon> swap_;
  std::unique_ptr<Program> program_;
};

TEST_F(Oversize, ProgramHasMoreMemoryThanTheGpuAndSeesIt) {
  start({.oversize = kInHost});
  EXPECT_EQ(read_until("filled"),
            "total 244 MiB, free 144 MiB\nexport: CUDA_ERROR_OUT_OF_MEMORY\nhas 134 MiB\n");
  EXPECT_GE(swap_->hosted_bytes(0), 40 * kMiB);
  end();
}

TEST_F(Oversize, EveryByteIsAsItWasWrittenWhileTurnsAreTakenAway) {
  start({.disturbs = true, .oversize = kInHost, .seed = 41});
  const std::string said = read_until("filled");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  ASSERT_TRUE(swap_->wait_for_evictions(swap_->evictions() + 8));
  EXPECT_GT(swap_->evicted_bytes(), kOnGpu);
  EXPECT_GE(swap_->hosted_bytes(0), 40 * kMiB);
  end();
}

TEST_F(Oversize, RestartedDaemonLearnsTheMemoryOnTheHost) {
  SwapBehaviour behaviour{.disturbs = true, .oversize = kInHost, .seed = 42};
  start(behaviour);
  const std::string said = read_until("filled");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  const std::uint64_t hosted = swap_->hosted_bytes(0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(swap_->wait_for_evictions(2));
    EXPECT_EQ(swap_->bad(), "");
    ++behaviour.seed;
    start_swap_daemon(behaviour);
  }
  ASSERT_TRUE(swap_->wait_for_evictions(2));
  EXPECT_EQ(swap_->hosted_bytes(0), hosted);
  end();
}

TEST_F(Oversize, ProgramWithoutOversizeIsBoundedByTheGpu) {
  start({});
  const std::string said = read_until("filled");
  EXPECT_NE(said.find("total 196 MiB, free 96 MiB"), std::string::npos) << said;
  EXPECT_EQ(swap_->hosted_bytes(0), 0u);
  end();
}

// Frees, streams, captures, contexts, aliases and exports of all kinds, with some of the memory in
// host memory.
TEST_F(Oversize, AllAllocatorsShareTheLimit) {
  start_swap_daemon({.disturbs = true, .oversize = 200 * kMiB, .seed = 43});
  Program probe({foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE, "--",
                 foreign(PROBE_SWAP), "torture", "6", "9"},
                lease());
  std::string said, line;
  while (!(line = probe.read_line()).empty() && line != "done") said += line + "\n";
  EXPECT_EQ(line, "done");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  EXPECT_GT(swap_->evictions(), 3u);
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0));
  EXPECT_TRUE(swap_->wait_for_hosted(0, 0))
      << swap_->hosted_bytes(0) << " were not freed, or not told";
  EXPECT_GE(swap_->most_hosted(), 20 * kMiB);
  EXPECT_EQ(swap_->bad(), "");
  probe.write_line("");
  EXPECT_EQ(probe.wait(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
