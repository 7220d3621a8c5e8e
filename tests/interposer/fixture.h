// The base of every test of libgpurota: a simulated machine with two GPUs of 8 GiB, and a fake
// daemon whose lease is 256 MiB of the first one.
#pragma once

#include "fake_daemon.h"
#include "program.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gpurota::interposer_test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

// The program or library at `built`, or the one of the same name in GPUROTA_FOREIGN. With
// GPUROTA_FOREIGN, the same tests run with the binaries of another architecture, under emulation
// (run_foreign.sh).
inline std::string foreign(const std::string& built) {
  const char* folder = std::getenv("GPUROTA_FOREIGN");
  return folder == nullptr ? built : folder + built.substr(built.rfind('/'));
}

inline std::vector<Uuid> ask_uuids(const std::string& machine_dir) {
  Program program({foreign(PROBE_SIM), "--dir", machine_dir, PROBE_MACHINE, "--",
                   foreign(PROBE_DYNAMIC), "uuids"},
                  {});
  std::vector<Uuid> found;
  for (std::string line; !(line = program.read_line()).empty();) {
    Uuid uuid{};
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      uuid[i] = static_cast<std::uint8_t>(std::stoi(line.substr(2 * i, 2), nullptr, 16));
    }
    found.push_back(uuid);
  }
  program.wait();
  return found;
}

class InterposerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    uuids_ = ask_uuids(dir_.file("machine"));
    ASSERT_EQ(uuids_.size(), 2u);
    start_daemon();
  }

  void start_daemon(std::uint64_t limit = 256 * kMiB, std::uint64_t context_cost = 0) {
    daemon_.reset();
    daemon_ = std::make_unique<FakeDaemon>(socket_path(), std::vector<FakeGpu>{{uuids_[0], limit}},
                                           context_cost);
  }

  std::string socket_path() const { return dir_.file("tenant.sock"); }

  std::map<std::string, std::string> lease() const {
    return {{"LD_PRELOAD", foreign(PROBE_LIBRARY)},
            {"GPUROTA_LEASE", "L12"},
            {"GPUROTA_TOKEN", kToken},
            {"GPUROTA_SOCKET", socket_path()},
            {"GPUROTA_WAIT_MS", "5000"}};
  }

  std::unique_ptr<Program> start(const std::string& probe, const std::string& scenario,
                                 std::map<std::string, std::string> extra) {
    return std::make_unique<Program>(
        std::vector<std::string>{foreign(PROBE_SIM), "--dir", dir_.file("machine"), PROBE_MACHINE,
                                 "--", foreign(probe), scenario},
        extra);
  }

  int run(const std::string& scenario, const std::string& lookup = "") {
    auto extra = lease();
    if (!lookup.empty()) extra["PROBE_LOOKUP"] = lookup;
    return start(lookup.empty() ? PROBE_LINKED : PROBE_DYNAMIC, scenario, extra)->wait();
  }

  testing::TempDir dir_;
  std::vector<Uuid> uuids_;
  std::unique_ptr<FakeDaemon> daemon_;
};

}  // namespace gpurota::interposer_test
