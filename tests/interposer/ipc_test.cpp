// Memory that two processes of a lease share by handle: which process is charged, and until when.
#include "fixture.h"
#include "swap_daemon.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

namespace gpurota::interposer_test {
namespace {

class SharedMemory : public InterposerTest {
 protected:
  void SetUp() override {
    if (std::getenv("GPUROTA_FOREIGN") != nullptr) GTEST_SKIP() << "not under emulation";
    InterposerTest::SetUp();
  }
  std::unique_ptr<Program> start_process() { return start_process(lease()); }
  std::unique_ptr<Program> start_process(const std::map<std::string, std::string>& environment) {
    auto program = std::make_unique<Program>(
        std::vector<std::string>{foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE,
                                 "--", foreign(PROBE_IPC)},
        environment);
    EXPECT_EQ(program->read_line(), "ready");
    return program;
  }
  static std::string ask(Program& program, const std::string& line) {
    program.write_line(line);
    return program.read_line();
  }
  // A handle of 96 MiB in which all words are 7.
  static std::string give_handle(Program& owner) {
    EXPECT_EQ(ask(owner, "alloc 96"), "CUDA_SUCCESS");
    EXPECT_EQ(ask(owner, "set 7"), "CUDA_SUCCESS");
    const std::string said = ask(owner, "handle");
    EXPECT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
    return said.size() > 13 ? said.substr(13) : "";
  }
  // The path of a descriptor of memory of this size, which the owner has mapped.
  static std::string give_descriptor(Program& owner, int mib) {
    EXPECT_EQ(ask(owner, "map " + std::to_string(mib)), "CUDA_SUCCESS");
    const std::string said = ask(owner, "export");
    EXPECT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
    return said.size() > 13 ? said.substr(13) : "";
  }
  void wait_for_tenants(int count) {
    for (int i = 0; daemon_->tenants() != count && i < 2000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(daemon_->tenants(), count);
  }
};

TEST_F(SharedMemory, OwnerIsChargedUntilItFreesTheMemory) {
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*other, "check 7"), "same");
  EXPECT_EQ(ask(*other, "set 8"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "check 8"), "same");
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*owner, "free"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "charged"), "0");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(SharedMemory, MemoryOfAKilledOwnerIsChargedToThoseWhoOpenedIt) {
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  owner->signal(SIGKILL);
  owner->wait();
  wait_for_tenants(1);
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*other, "check 7"),
            "same");  // the simulator's memory lives while any process holds it
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "0");
  EXPECT_NE(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "alloc 260"), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ask(*other, "alloc 256"), "CUDA_SUCCESS");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(SharedMemory, MemorySharedWithinALeaseIsChargedOnceUntilItsLastUserEnds) {
  const auto owner = start_process();
  const auto other = start_process();
  const std::string path = give_descriptor(*owner, 96);
  EXPECT_EQ(ask(*other, "import " + path + " 96"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "charged"), "96");
  EXPECT_EQ(ask(*other, "keep 160"), "CUDA_SUCCESS") << "all of the 256 MiB are used, and no more";
  EXPECT_EQ(ask(*owner, "unmap"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "alloc 2"), "CUDA_ERROR_OUT_OF_MEMORY") << "the other has it still";
  EXPECT_EQ(ask(*other, "unmap"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "alloc 96"), "CUDA_SUCCESS");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

// The owner's process has no libgpurota: nothing reports the owner or the size, and the memory is
// not even mapped.
TEST_F(SharedMemory, MemoryOfAProcessWithoutTheLibraryIsChargedByItsRealSize) {
  const auto stranger = start_process({});
  const auto importer = start_process();
  for (const int mib : {2, 6, 96, 254, 256}) {
    const std::string path = give_descriptor(*stranger, mib);
    EXPECT_EQ(ask(*importer, "take " + path), "CUDA_SUCCESS") << mib;
    EXPECT_EQ(ask(*importer, "charged"), std::to_string(mib));
    EXPECT_EQ(ask(*importer, "release"), "CUDA_SUCCESS");
    EXPECT_EQ(ask(*importer, "charged"), "0");
    EXPECT_EQ(ask(*stranger, "unmap"), "CUDA_SUCCESS");
  }
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

TEST_F(SharedMemory, ImportBeyondTheLimitIsRefusedAndTheOwnerKeepsTheMemory) {
  const auto stranger = start_process({});
  const auto importer = start_process();
  EXPECT_EQ(ask(*importer, "keep 200"), "CUDA_SUCCESS");
  const std::string path = give_descriptor(*stranger, 96);
  EXPECT_EQ(ask(*stranger, "set 5"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*importer, "take " + path), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ask(*importer, "charged"), "200");
  EXPECT_EQ(ask(*stranger, "check 5"), "same");
  EXPECT_EQ(ask(*stranger, "unmap"), "CUDA_SUCCESS");
  const std::string handle = give_handle(*stranger);
  EXPECT_EQ(ask(*importer, "open " + handle), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(ask(*importer, "charged"), "200");
  EXPECT_EQ(ask(*stranger, "check 7"), "same");
  EXPECT_EQ(ask(*importer, "alloc 56"), "CUDA_SUCCESS");
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

// As PyTorch shares expandable segments: exported memory is never evicted, and both processes see
// the same bytes.
TEST_F(SharedMemory, SwapLeaseSharesDescriptorsWhileTurnsAreTakenAway) {
  daemon_.reset();
  SwapDaemon swap(socket_path(), {{uuids_[0], 1024 * kMiB}}, {.disturbs = true, .seed = 51});
  const auto owner = start_process();
  const auto other = start_process();
  EXPECT_EQ(ask(*owner, "map 20"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "set 1"), "CUDA_SUCCESS");
  const std::string said = ask(*owner, "export");
  ASSERT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
  EXPECT_EQ(ask(*other, "import " + said.substr(13) + " 20"), "CUDA_SUCCESS");
  for (int i = 1; i < 40 || swap.evictions() < 6; i += 2) {
    EXPECT_EQ(ask(*other, "check " + std::to_string(i)), "same");
    EXPECT_EQ(ask(*other, "set " + std::to_string(i + 1)), "CUDA_SUCCESS");
    EXPECT_EQ(ask(*owner, "check " + std::to_string(i + 1)), "same");
    EXPECT_EQ(ask(*owner, "set " + std::to_string(i + 2)), "CUDA_SUCCESS");
  }
  EXPECT_TRUE(swap.wait_for_memory(0, 0, 2 * 100 * kMiB + 20 * kMiB)) << "it is its maker's, wired";
  EXPECT_EQ(ask(*owner, "unmap"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "unmap"), "CUDA_SUCCESS");
  EXPECT_TRUE(swap.wait_for_memory(0, 0, 2 * 100 * kMiB));
  EXPECT_EQ(swap.bad(), "");
}

// In a lease with evictable memory, libgpurota gives memory of cuMemAlloc a handle of its own
// instead of the driver's.
class SharedSwapMemory : public SharedMemory {
 protected:
  static constexpr std::uint64_t kContext = 100 * kMiB;  // as in SwapBehaviour
  void SetUp() override {
    SharedMemory::SetUp();
    daemon_.reset();
  }
  std::unique_ptr<SwapDaemon> start_daemon(const SwapBehaviour& behaviour = {}) {
    return std::make_unique<SwapDaemon>(socket_path(),
                                        std::vector<FakeGpu>{{uuids_[0], 1024 * kMiB}}, behaviour);
  }
};

TEST_F(SharedSwapMemory, StaysWhileTurnsAreTakenAwayAndIsTheSameForBoth) {
  const auto swap = start_daemon({.disturbs = true, .seed = 52});
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);  // 96 MiB, so two blocks
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "set 1"), "CUDA_SUCCESS");
  for (int i = 1; i < 40 || swap->evictions() < 6; i += 2) {
    EXPECT_EQ(ask(*other, "check " + std::to_string(i)), "same");
    EXPECT_EQ(ask(*other, "set " + std::to_string(i + 1)), "CUDA_SUCCESS");
    EXPECT_EQ(ask(*owner, "check " + std::to_string(i + 1)), "same");
    EXPECT_EQ(ask(*owner, "set " + std::to_string(i + 2)), "CUDA_SUCCESS");
  }
  EXPECT_TRUE(swap->wait_for_memory(0, 0, 2 * kContext + 96 * kMiB)) << "it is its maker's, wired";
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "free"), "CUDA_SUCCESS");
  EXPECT_TRUE(swap->wait_for_memory(0, 0, 2 * kContext));
  EXPECT_EQ(swap->bad(), "");
}

TEST_F(SharedSwapMemory, MemoryOfMoreBlocksThanOneAnswerCarriesIsComplete) {
  const auto swap = std::make_unique<SwapDaemon>(
      socket_path(), std::vector<FakeGpu>{{uuids_[0], 4096 * kMiB}}, SwapBehaviour{});
  const auto owner = start_process();
  const auto other = start_process();
  const int mib = GPUROTA_SHARED_BLOCKS * 64 + 2;
  EXPECT_EQ(ask(*owner, "alloc " + std::to_string(mib)), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "number"), "CUDA_SUCCESS");
  const std::string said = ask(*owner, "handle");
  ASSERT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
  EXPECT_EQ(ask(*other, "open " + said.substr(13)), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "size"), std::to_string(mib));
  EXPECT_EQ(ask(*other, "numbered"), "same");
  EXPECT_EQ(swap->bad(), "");
}

// Small allocations share a page, which stays as long as any of them lives.
TEST_F(SharedSwapMemory, SmallSharedBlockIsOpenedAtItsBeginning) {
  const auto swap = start_daemon();
  const auto owner = start_process();
  const auto other = start_process();
  EXPECT_EQ(ask(*owner, "small 3000"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*owner, "small 5000"), "CUDA_SUCCESS");  // the commands below use this one
  EXPECT_EQ(ask(*owner, "set 7"), "CUDA_SUCCESS");
  const std::string said = ask(*owner, "handle");
  ASSERT_EQ(said.substr(0, 13), "CUDA_SUCCESS ");
  EXPECT_EQ(ask(*other, "open " + said.substr(13)), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "bytes"), "5000");
  EXPECT_EQ(ask(*other, "check 7"), "same");
  EXPECT_TRUE(swap->wait_for_memory(0, 0, 2 * kContext + 2 * kMiB));
  EXPECT_EQ(ask(*owner, "free"), "CUDA_SUCCESS");
  EXPECT_TRUE(swap->wait_for_memory(0, 0, 2 * kContext + 2 * kMiB)) << "the first is there still";
  EXPECT_EQ(swap->bad(), "");
}

TEST_F(SharedSwapMemory, FreedSharedBlockIsNotOpened) {
  const auto swap = start_daemon();
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*owner, "free"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_ERROR_NOT_PERMITTED");
  EXPECT_EQ(ask(*owner, "alloc 96"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_ERROR_NOT_PERMITTED")
      << "another one, perhaps there";
  EXPECT_EQ(swap->bad(), "");
}

TEST_F(SharedSwapMemory, MemoryOfAKilledOwnerStaysUsableButCannotBeOpened) {
  const auto swap = start_daemon();
  const auto owner = start_process();
  const auto other = start_process();
  const auto late = start_process();
  const std::string handle = give_handle(*owner);
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  owner->signal(SIGKILL);
  owner->wait();
  EXPECT_EQ(ask(*other, "check 7"), "same");
  EXPECT_EQ(ask(*late, "open " + handle), "CUDA_ERROR_NOT_PERMITTED");
  EXPECT_EQ(ask(*other, "close"), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "check 7"), "CUDA_ERROR_INVALID_VALUE");
}

// The next daemon knows the key again as soon as the owner has reconnected.
TEST_F(SharedSwapMemory, IsOpenedAfterADaemonHasBeenKilled) {
  auto swap = start_daemon();
  const auto owner = start_process();
  const auto other = start_process();
  const std::string handle = give_handle(*owner);
  swap.reset();
  swap = start_daemon();
  EXPECT_TRUE(swap->wait_for_memory(0, 0, 2 * kContext + 96 * kMiB)) << "both have come back";
  EXPECT_EQ(ask(*other, "open " + handle), "CUDA_SUCCESS");
  EXPECT_EQ(ask(*other, "check 7"), "same");
  EXPECT_EQ(swap->bad(), "");
}

}  // namespace
}  // namespace gpurota::interposer_test
