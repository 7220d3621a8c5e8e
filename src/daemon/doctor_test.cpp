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

TEST(Doctor, SaysWhatAUnifiedGpuHas) {
  const proto::Check gpu = check_of(examine(with_unified_gpu()), "gpu 0");
  EXPECT_EQ(gpu.status, proto::CheckStatus::kOk);
  EXPECT_EQ(gpu.summary,
            "NVIDIA GB10, unified memory (experimental): the machine's 120 GiB, of which leases "
            "leave 12 GiB; 100 GiB available now");
}

TEST(Doctor, WarnsWhereNobodyKnowsWhatAUnifiedGpuHasOrWhoUsesIt) {
  Examination machine = with_unified_gpu();
  machine.gpus[0].sample.machine_available.reset();
  EXPECT_EQ(check_of(examine(machine), "gpu 0").status, proto::CheckStatus::kWarning);
  EXPECT_EQ(check_of(examine(machine), "gpu 0 processes").name, "");
  machine.gpus[0].sample.lists_processes = false;
  EXPECT_EQ(check_of(examine(machine), "gpu 0 processes").status, proto::CheckStatus::kWarning);
}

}  // namespace
}  // namespace gpurota::daemon
