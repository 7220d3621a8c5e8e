#include "sys/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

namespace gpurota::sys {
namespace {

TEST(Journal, GetsTheLineItsLevelAndWhoWroteIt) {
  EXPECT_THAT(journal_entry(log::Level::kWarning, "disk full bytes=3", {{"bytes", 3}}),
              ElementsAre("PRIORITY=4", "SYSLOG_IDENTIFIER=gpurotad", "MESSAGE=disk full bytes=3"));
}

TEST(Journal, GetsLeaseUserAndGpuAsFieldsThatItCanBeSearchedBy) {
  const auto entry =
      journal_entry(log::Level::kInfo, "lease made",
                    {{"lease", "L12"}, {"uid", 1000}, {"gpu", "GPU-1"}, {"reason", "x"}});
  EXPECT_THAT(entry, Contains("LEASE=L12"));
  EXPECT_THAT(entry, Contains("UID=1000"));
  EXPECT_THAT(entry, Contains("GPU=GPU-1"));
  EXPECT_EQ(entry.size(), 6u) << "nothing else is one";
}

TEST(Journal, UnknownValuesHaveNoField) {
  const auto entry = journal_entry(log::Level::kInfo, "m", {{"uid", "-"}, {"lease", ""}});
  EXPECT_THAT(entry, Not(Contains(StartsWith("UID="))));
  EXPECT_THAT(entry, Not(Contains(StartsWith("LEASE="))));
}

TEST(Journal, ForeignValueCannotAddAField) {
  const auto entry = journal_entry(log::Level::kInfo, "m", {{"gpu", "a\nLEASE=L1"}});
  ASSERT_EQ(entry.size(), 4u);
  EXPECT_EQ(entry.back().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace gpurota::sys
