// The base of tests of swap tenants: adds a daemon that disturbs turns, and swap_probe.
#pragma once

#include "fixture.h"
#include "swap_daemon.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::interposer_test {

inline constexpr std::uint64_t kContext = 100 * kMiB;

class SwapTest : public InterposerTest {
 protected:
  void SetUp() override {
    // An emulator has no barriers between threads and no memory that fork wipes.
    if (std::getenv("GPUROTA_FOREIGN") != nullptr) GTEST_SKIP() << "not under emulation";
    InterposerTest::SetUp();
    daemon_.reset();
  }

  void start_swap_daemon(const SwapBehaviour& behaviour, std::uint64_t limit = 1024 * kMiB,
                         std::size_t gpus = 1) {
    swap_.reset();
    std::vector<FakeGpu> all;
    for (std::size_t i = 0; i < gpus; ++i) all.push_back({uuids_[i], limit});
    swap_ = std::make_unique<SwapDaemon>(socket_path(), all, behaviour);
  }

  std::unique_ptr<Program> start_probe(std::vector<std::string> words,
                                       const std::string& wait_ms = "20000") {
    std::vector<std::string> argv = {foreign(PROBE_SIM), "--dir", dir_.file("machine"),
                                     PROBE_MACHINE,      "--",    foreign(PROBE_SWAP)};
    argv.insert(argv.end(), words.begin(), words.end());
    auto extra = lease();
    extra["GPUROTA_WAIT_MS"] = wait_ms;
    extra["PROBE_CONTEXTS"] = "2";
    return std::make_unique<Program>(argv, extra);
  }

  // Reads up to the line `last`; returns the lines before it.
  static std::string read_until(Program& probe, const std::string& last) {
    std::string said;
    for (std::string line; !(line = probe.read_line()).empty();) {
      if (line == last) return said;
      said += line + "\n";
    }
    return said + "(ended)";
  }

  // Evicts all evictable memory, and keeps it evicted.
  void put_all_out(SwapBehaviour& behaviour) {
    behaviour.disturbs = true;
    behaviour.opens = false;
    swap_->set(behaviour);
    ASSERT_TRUE(swap_->wait_for_resident(0, 0));
  }

  // Checks that no error was counted so far, and that the probe, which waits for a line, exits with
  // 0.
  void expect_good_end(Program& probe) {
    EXPECT_EQ(swap_->bad(), "");
    probe.write_line("");
    EXPECT_EQ(probe.wait(), 0);
  }

  // The probe allocates `movable` bytes, makes queries while they are evicted, and then frees them.
  void expect_answers_while_away(const std::string& what, std::uint64_t movable) {
    SwapBehaviour behaviour{};
    start_swap_daemon(behaviour);
    const auto probe = start_probe({what});
    ASSERT_EQ(read_until(*probe, "allocated"), "");
    ASSERT_TRUE(swap_->wait_for_memory(0, movable, kContext));
    behaviour.disturbs = true;
    swap_->set(behaviour);
    ASSERT_TRUE(swap_->wait_for_evictions(2));
    probe->write_line("");
    EXPECT_EQ(read_until(*probe, "freed"), "");
    EXPECT_TRUE(swap_->wait_for_memory(0, 0, kContext));
    expect_good_end(*probe);
  }

  std::unique_ptr<SwapDaemon> swap_;
};

}  // namespace gpurota::interposer_test
