// Swap tenants on the simulated driver: their memory is evicted and restored while they work,
// capture, fork, make contexts and free memory, and while their daemon restarts.
#include "swap_fixture.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gpurota::interposer_test {
namespace {

TEST_F(SwapTest, MemoryIsEvictedAndRestoredWhileAProgramWorks) {
  start_swap_daemon({.disturbs = true, .seed = 5});
  const auto probe = start_probe({"torture", "8", "1"});
  const std::string said = read_until(*probe, "done");
  EXPECT_NE(said.find("checks"), std::string::npos) << said;
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  EXPECT_EQ(said.find("ended"), std::string::npos) << said;
  EXPECT_GT(swap_->evictions(), 3u);
  EXPECT_GT(swap_->evicted_bytes(), 10 * kMiB);
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0))
      << swap_->memory(0).movable_bytes << " movable, " << swap_->memory(0).wired_bytes << " wired";
  expect_good_end(*probe);
}

TEST_F(SwapTest, MemoryOfTwoGpusMoves) {
  start_swap_daemon({.disturbs = true, .seed = 21}, 1024 * kMiB, 2);
  const auto probe = start_probe({"torture", "6", "3", "two"});
  const std::string said = read_until(*probe, "done");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  EXPECT_EQ(said.find("ended"), std::string::npos) << said;
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0));
  EXPECT_TRUE(swap_->wait_for_memory(1, 0, 0));
  expect_good_end(*probe);
}

TEST_F(SwapTest, DaemonKilledDuringAMoveFindsTheSameMemoryAfterwards) {
  SwapBehaviour behaviour{.disturbs = true, .seed = 7};
  start_swap_daemon(behaviour);
  const auto probe = start_probe({"torture", "0", "2"});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(swap_->wait_for_evictions(1 + static_cast<unsigned>(i) % 3));
    EXPECT_EQ(swap_->bad(), "");
    ++behaviour.seed;
    start_swap_daemon(behaviour);
  }
  ASSERT_TRUE(swap_->wait_for_evictions(1));
  probe->write_line("");
  const std::string said = read_until(*probe, "done");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  EXPECT_EQ(said.find("ended"), std::string::npos) << said;
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0))
      << swap_->memory(0).movable_bytes << " movable, " << swap_->memory(0).wired_bytes << " wired";
  expect_good_end(*probe);
}

TEST_F(SwapTest, CapturesInTheStreamsOfThreadsGoOnWhileTurnsAreTakenAway) {
  start_swap_daemon({.disturbs = true, .seed = 41});
  const auto probe = start_probe({"capture_per_thread", "2"});
  EXPECT_EQ(read_until(*probe, "done"), "");
  EXPECT_GT(swap_->evictions(), 3u);
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0));
  expect_good_end(*probe);
}

// The GPU is idle most of the time, and nearly every sample shows it as idle.
TEST_F(SwapTest, ProgramWithSmallSubmissionsCountsAsBusy) {
  start_swap_daemon({});
  const auto probe = start_probe({"sip", "2"});
  ASSERT_EQ(read_until(*probe, "begun"), "");
  swap_->busy_share();
  ASSERT_EQ(read_until(*probe, "end"), "");
  EXPECT_GT(swap_->busy_share(), 0.7);
  probe->write_line("");
  EXPECT_EQ(probe->wait(), 0);
}

TEST_F(SwapTest, ProgramQueriesAndFreesEvictedMemory) {
  // The sum is 72 MiB, and a page of 2 MiB for the small allocations. Nothing is reported until all
  // memory is evicted.
  expect_answers_while_away("answers", 74 * kMiB);
}

TEST_F(SwapTest, ProgramQueriesAndUnmapsEvictedMappings) {
  expect_answers_while_away("mapped", 66 * kMiB);
}

TEST_F(SwapTest, ExportedOrBoundMemoryBecomesWired) {
  start_swap_daemon({});
  const auto probe = start_probe({"give_away"});
  ASSERT_EQ(read_until(*probe, "made"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 8 * kMiB, kContext + 128 * kMiB));
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "exported"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 4 * kMiB, kContext + 132 * kMiB));
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "bound"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext + 136 * kMiB));
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "end"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext));
  expect_good_end(*probe);
}

// Mapped memory outlives contexts, but without a context it cannot be copied.
TEST_F(SwapTest, EvictedMappingWithoutAContextIsNotCountedUntilThereIsOne) {
  SwapBehaviour behaviour{};
  start_swap_daemon(behaviour);
  const auto probe = start_probe({"orphan"});
  ASSERT_EQ(read_until(*probe, "made"), "");
  ASSERT_TRUE(swap_->wait_for_memory(0, 20 * kMiB, kContext));
  put_all_out(behaviour);
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "alone"), "");
  behaviour.opens = true;
  swap_->set(behaviour);
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0)) << "it is still asked for";
  EXPECT_EQ(swap_->bad(), "");
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "looked"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext));
  expect_good_end(*probe);
}

TEST_F(SwapTest, EvictedMappingCanBeFreedWithoutAContext) {
  SwapBehaviour behaviour{};
  start_swap_daemon(behaviour);
  const auto probe = start_probe({"orphan", "frees"});
  ASSERT_EQ(read_until(*probe, "made"), "");
  put_all_out(behaviour);
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "alone"), "");
  behaviour.opens = true;
  behaviour.disturbs = false;
  swap_->set(behaviour);
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0));
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "freed"), "");
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "looked"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext));
  expect_good_end(*probe);
}

// An RDMA device accesses registered memory directly, without any call to the driver.
TEST_F(SwapTest, NothingIsEvictedWhileAnRdmaDeviceIsOpen) {
  SwapBehaviour behaviour{};
  start_swap_daemon(behaviour);
  const std::string device = dir_.file("dev/infiniband/uverbs0");
  std::filesystem::create_directories(dir_.file("dev/infiniband"));
  std::ofstream(device).close();
  const auto probe = start_probe({"rdma", device});
  ASSERT_EQ(read_until(*probe, "open"), "");
  behaviour.disturbs = true;
  swap_->set(behaviour);
  ASSERT_TRUE(swap_->wait_for_refusals(2));
  EXPECT_EQ(swap_->evicted_bytes(), 0u);
  probe->write_line("");
  ASSERT_EQ(read_until(*probe, "closed"), "");
  ASSERT_TRUE(swap_->wait_for_evictions(swap_->evictions() + 3));
  EXPECT_GT(swap_->evicted_bytes(), 0u);
  probe->write_line("");
  EXPECT_EQ(read_until(*probe, "end"), "");
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext));
  expect_good_end(*probe);
}

// The gate stayed closed during the write, so the copies in host memory seem up to date.
TEST_F(SwapTest, WriteThatPassedTheGateIsNotLost) {
  start_swap_daemon({.disturbs = true, .stays_shut = true, .copies_all = true});
  const auto probe = start_probe({"overwrite", "6"});
  EXPECT_EQ(read_until(*probe, "end"), "");
  EXPECT_GT(swap_->evictions(), 6u);
  expect_good_end(*probe);
}

// The daemon opens the gate although memory is evicted. The tenant does not run without its memory,
// and corrects the daemon's accounts.
TEST_F(SwapTest, GateIsNotOpenedWhileMemoryIsEvicted) {
  SwapBehaviour behaviour{.disturbs = true, .seed = 3};
  start_swap_daemon(behaviour);
  const auto probe = start_probe({"torture", "0", "4"});
  ASSERT_TRUE(swap_->wait_for_evictions(1));
  behaviour.forgets = true;
  swap_->set(behaviour);
  const std::uint64_t before = swap_->evictions();
  ASSERT_TRUE(swap_->wait_for_evictions(before + 4));
  probe->write_line("");
  const std::string said = read_until(*probe, "done");
  EXPECT_EQ(said.find("line"), std::string::npos) << said;
  EXPECT_EQ(said.find("ended"), std::string::npos) << said;
  EXPECT_TRUE(swap_->wait_for_memory(0, 0, 0));
  expect_good_end(*probe);
}

TEST_F(SwapTest, AProgramThatWaitsForAGoneDaemonGetsAnError) {
  start_swap_daemon({.opens = false});
  const auto probe = start_probe({"stand"}, "1500");
  ASSERT_TRUE(swap_->wait_for_waiting_submission());
  ASSERT_TRUE(swap_->wait_for_question());
  EXPECT_EQ(swap_->bad(), "");
  swap_.reset();
  const std::string said = read_until(*probe, "end");
  EXPECT_NE(said.find("allocation: CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << said;
  EXPECT_NE(said.find("submission: CUDA_ERROR_DEVICE_UNAVAILABLE"), std::string::npos) << said;
  EXPECT_EQ(probe->wait(), 0);
}

TEST_F(SwapTest, WaitingForATurnHasNoBound) {
  SwapBehaviour behaviour{.opens = false};
  start_swap_daemon(behaviour);
  const auto probe = start_probe({"stand"}, "300");
  ASSERT_TRUE(swap_->wait_for_waiting_submission());
  ASSERT_TRUE(swap_->wait_for_question());
  std::this_thread::sleep_for(std::chrono::milliseconds(900));  // three times its waiting time
  behaviour.opens = true;
  swap_->set(behaviour);
  const std::string said = read_until(*probe, "end");
  EXPECT_NE(said.find("allocation: CUDA_SUCCESS"), std::string::npos) << said;
  EXPECT_NE(said.find("submission: CUDA_SUCCESS"), std::string::npos) << said;
  EXPECT_EQ(probe->wait(), 0);
}

// The tenant must return a grant whose memory cannot be made now. Otherwise the daemon would wait
// for the eviction of memory that does not exist.
TEST_F(SwapTest, GrantThatCannotBeUsedNowIsReturnedAndRequestedAgain) {
  start_swap_daemon({}, 1024 * kMiB);
  Program probe(
      {foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE, "--", foreign(PROBE_IPC)},
      lease());
  EXPECT_EQ(probe.read_line(), "ready");
  probe.write_line("alloc 4");
  EXPECT_EQ(probe.read_line(), "CUDA_SUCCESS");
  swap_->set({.takes_away = true});
  EXPECT_TRUE(swap_->wait_for_resident(0, 0));
  probe.write_line("alloc 96");
  EXPECT_TRUE(swap_->wait_for_grant_while_away());
  EXPECT_TRUE(swap_->wait_for_memory(0, 4 * kMiB, 100 * kMiB));
  swap_->set({});
  EXPECT_EQ(probe.read_line(), "CUDA_SUCCESS");
  EXPECT_TRUE(swap_->wait_for_memory(0, 100 * kMiB, 100 * kMiB));
  EXPECT_EQ(swap_->bad(), "");
}

// Intended differences: memory of pools is evictable, so pools keep no freed memory; and an
// allocation during a capture succeeds instead of ending the capture.
const std::set<std::string> kDifferences = {
    "a_threshold_keeps_memory_until_it_is_trimmed",
    "an_allocation_during_a_global_capture_is_refused_and_ends_it",
    // A program sees the free memory of its lease, not of the GPU. The maker of memory is not
    // charged after freeing it, even while importers keep the memory.
    "external_memory_of_another_process_is_its_makers_and_lives_as_long_as_it_is_imported",
    "a_mapped_buffer_shows_the_same_bytes_and_is_counted_once",
    "memory_that_is_freed_while_it_is_open_stays_until_it_is_closed",
    // A lease is not charged for memory that only a descriptor keeps.
    "memory_that_only_a_descriptor_keeps_stays",
    // A small allocation is freed with the page that it shares with other allocations of its
    // process.
    "nothing_comes_to_lie_where_small_memory_was_freed_while_it_is_open",
    // All evictable memory can be shared.
    "only_linear_memory_of_the_process_itself_has_a_handle"};

// The driver's own conformance programs pass under a swap lease as without one, both undisturbed
// and with constant turns.
class DriverUnderSwap : public SwapTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void check(const SwapBehaviour& behaviour) {
    start_swap_daemon(behaviour, 4096 * kMiB);
    Program probe({foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE, "--",
                   std::string(PROBE_DRIVER_CHECKS) + "/driver_" + GetParam() + "_check"},
                  lease());
    int passed = 0;
    for (std::string line; !(line = probe.read_line()).empty();) {
      const std::string verdict = line.substr(0, line.find(' '));
      const std::string name = line.substr(verdict.size() + 1, line.find(':') - verdict.size() - 1);
      EXPECT_TRUE(verdict != "FAIL" || kDifferences.count(name) != 0) << line;
      passed += verdict == "ok" ? 1 : 0;
    }
    EXPECT_GT(passed, 2);
    probe.wait();
    EXPECT_EQ(swap_->bad(), "");
  }
};

TEST_P(DriverUnderSwap, AnswersAsItDoesWithoutALease) { check({}); }

TEST_P(DriverUnderSwap, AnswersAsItDoesWhileTurnsAreTakenAway) {
  check({.disturbs = true, .seed = 11});
}

INSTANTIATE_TEST_SUITE_P(Checks, DriverUnderSwap,
                         ::testing::Values("memory", "vmm", "copy", "pool", "stream", "graph",
                                           "capture", "ipc", "external"));

}  // namespace
}  // namespace gpurota::interposer_test
