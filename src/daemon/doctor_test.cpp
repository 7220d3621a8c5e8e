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

}  // namespace
}  // namespace gpurota::daemon
