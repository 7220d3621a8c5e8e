// An inference server whose memory is evicted repeatedly: unchanged memory is not copied, and
// changed memory is.
#include "fixture.h"
#include "swap_daemon.h"

#include <cstdlib>
#include <memory>
#include <string>

namespace gpurota::interposer_test {
namespace {

constexpr std::uint64_t kServer = 96 * kMiB;

class CleanMemory : public InterposerTest {
 protected:
  void SetUp() override {
    if (std::getenv("GPUROTA_FOREIGN") != nullptr) GTEST_SKIP() << "not under emulation";
    InterposerTest::SetUp();
    daemon_.reset();
  }

  void start(const SwapBehaviour& behaviour, const std::string& changes) {
    const std::vector<FakeGpu> gpus = {{uuids_[0], 1024 * kMiB}};
    swap_ = std::make_unique<SwapDaemon>(socket_path(), gpus, behaviour);
    server_ = std::make_unique<Program>(
        std::vector<std::string>{foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE,
                                 "--", foreign(PROBE_SERVER), changes},
        lease());
    ASSERT_EQ(server_->read_line(), "serving");
  }

  void end() {
    server_->write_line("");
    EXPECT_EQ(server_->read_line(), "done");
    EXPECT_EQ(server_->wait(), 0);
    EXPECT_EQ(swap_->bad(), "");
  }

  std::unique_ptr<SwapDaemon> swap_;
  std::unique_ptr<Program> server_;
};

TEST_F(CleanMemory, IsNotCopiedAgain) {
  start({.disturbs = true, .seed = 31}, "0");
  ASSERT_TRUE(swap_->wait_for_clean_bytes(4 * kServer));
  end();
}

TEST_F(CleanMemory, ChangeOfOneByteIsDetected) {
  start({.disturbs = true, .seed = 32}, "3");
  ASSERT_TRUE(swap_->wait_for_clean_bytes(4 * kServer));
  ASSERT_TRUE(swap_->wait_for_evictions(swap_->evictions() + 5));
  end();
}

TEST_F(CleanMemory, IsCopiedIfTheDaemonSaysSo) {
  start({.disturbs = true, .copies_all = true, .seed = 33}, "0");
  ASSERT_TRUE(swap_->wait_for_evictions(8));
  EXPECT_EQ(swap_->clean_bytes(), 0u);
  end();
}

}  // namespace
}  // namespace gpurota::interposer_test
