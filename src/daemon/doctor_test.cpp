#include "daemon/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

proto::Check check_of(const std::vector<proto::Check>& checks, const std::string& name) {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&](const proto::Check& check) { return check.name == name; });
  return found == checks.end() ? proto::Check() : *found;
}

TEST(Doctor, WarnsOfASiteThatKeepsFreeGpusForEver) {
  Examination machine;
  EXPECT_EQ(check_of(examine(machine), "queue").name, "");
  machine.keeps_free_gpus_for_ever = true;
  const proto::Check kept = check_of(examine(machine), "queue");
  EXPECT_EQ(kept.status, proto::CheckStatus::kWarning);
  EXPECT_EQ(kept.summary,
            "keep_free_gpus is 0s: idle GPUs are kept for ever for requests that wait for more of "
            "them, while others wait");
  EXPECT_EQ(kept.remedy,
            "set keep_free_gpus = \"1h\" (the default) in gpurota.toml, and run 'gpurota reload'");
}

TEST(Doctor, ReportsHowMuchMovableMemoryIsPinned) {
  Examination machine;
  EXPECT_EQ(check_of(examine(machine), "turns").name, "") << "nothing may have to move";
  machine.moving_leases = 2;
  machine.host_pins = {.pinned = gib(31), .may_pin = gib(31), .may_move = gib(42)};
  const proto::Check part = check_of(examine(machine), "turns");
  EXPECT_EQ(part.status, proto::CheckStatus::kWarning);
  EXPECT_EQ(part.summary,
            "31 GiB of 42 GiB pinned that 2 leases may have to move; a switch takes about 1.4 "
            "times as long as with all of it pinned");
  EXPECT_NE(part.remedy->find("no more than 31 GiB may be pinned"), std::string::npos);
  machine.host_pins = {.pinned = gib(3), .may_pin = gib(42), .may_move = gib(42)};
  machine.moving_leases = 1;
  const proto::Check whole = check_of(examine(machine), "turns");
  EXPECT_EQ(whole.status, proto::CheckStatus::kOk) << "the rest is being pinned";
  EXPECT_EQ(whole.summary, "3 GiB of 42 GiB pinned that 1 lease may have to move");
}

Examination with_unified_gpu() {
  Examination machine;
  Examination::Gpu gpu;
  gpu.name = "0";
  gpu.info.name = "NVIDIA GB10";
  gpu.info.unified = true;
  gpu.info.memory = gib(120);
  gpu.sample.machine_available = gib(100);
  gpu.reserve = gib(12);
  machine.gpus.push_back(std::move(gpu));
  return machine;
}

TEST(Doctor, ReportsTheMemoryOfAUnifiedGpu) {
  const proto::Check gpu = check_of(examine(with_unified_gpu()), "gpu 0");
  EXPECT_EQ(gpu.status, proto::CheckStatus::kOk);
  EXPECT_EQ(gpu.summary,
            "NVIDIA GB10, unified memory (experimental): the machine's 120 GiB, of which leases "
            "leave 12 GiB; 100 GiB available now");
}

TEST(Doctor, WarnsIfMemoryOrUseOfAUnifiedGpuIsUnknown) {
  Examination machine = with_unified_gpu();
  machine.gpus[0].sample.machine_available.reset();
  EXPECT_EQ(check_of(examine(machine), "gpu 0").status, proto::CheckStatus::kWarning);
  EXPECT_EQ(check_of(examine(machine), "gpu 0 processes").name, "");
  machine.gpus[0].sample.lists_processes = false;
  EXPECT_EQ(check_of(examine(machine), "gpu 0 processes").status, proto::CheckStatus::kWarning);
}

TEST(Doctor, SaysWhatTheDriverLimitsAndWhoseLimitsCount) {
  Examination machine = with_unified_gpu();
  EXPECT_EQ(check_of(examine(machine), "driver limits").name, "");
  machine.driver_limits.emplace();
  machine.driver_limits->slices = 2;
  machine.driver_limits->limited = 1;
  EXPECT_EQ(check_of(examine(machine), "driver limits").summary,
            "experimental: the driver limits 1 of 2 slices beside libgpurota");
  machine.driver_limits->others = {"1 GiB on GPU 0 for /a"};
  EXPECT_EQ(check_of(examine(machine), "driver limits").summary,
            "somebody else has set a limit: 1 GiB on GPU 0 for /a");
  EXPECT_NE(check_of(examine(machine), "driver limits").remedy.value_or("").find("update LEASE"),
            std::string::npos);
  machine.driver_limits->others.clear();
  machine.driver_limits->daemon_in = "/a";
  EXPECT_EQ(check_of(examine(machine), "driver limits").status, proto::CheckStatus::kWarning);
}

}  // namespace
}  // namespace gpurota::daemon
