#include "daemon/leases/attribution.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

class AttributionTest : public ::testing::Test {
 protected:
  // Makes a chain of processes, each the child of the process before it, and returns the last.
  pid_t chain(pid_t above, int length) {
    for (int i = 0; i < length; ++i) above = processes.spawn({.parent = above});
    return above;
  }
  // Puts the process into lease 7, but leaves membership_changes as it is.
  void hold(pid_t pid) {
    const auto [lease, added] = tables.leases.try_emplace(LeaseId{7}, processes);
    ASSERT_TRUE(lease->second.members.add(processes.id_of(pid)));
  }

  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  LeaseTables tables;
  Attribution attribution{processes, tables};
};

// One message of a tenant asks about 60 processes. With 240 ancestors each, the answer took half a
// second of the loop.
TEST_F(AttributionTest, DeepTreeWithoutALeaseIsWalkedOnce) {
  const pid_t last = chain(1, 200);
  std::vector<pid_t> asked;
  for (int i = 0; i < 60; ++i) asked.push_back(processes.spawn({.parent = last}));
  for (const pid_t pid : asked) EXPECT_FALSE(attribution.owner_of(pid).lease);
  EXPECT_LE(processes.reads(), 200u + 3 * 60);
  const std::size_t before = processes.reads();
  for (const pid_t pid : asked) EXPECT_FALSE(attribution.owner_of(pid).lease);
  EXPECT_EQ(processes.reads(), before + 60);
}

TEST_F(AttributionTest, DescendantOfALeasesProcessIsInTheLease) {
  const pid_t top = processes.spawn();
  hold(top);
  const pid_t last = chain(top, 200);
  std::vector<pid_t> asked;
  for (int i = 0; i < 60; ++i) asked.push_back(processes.spawn({.parent = last}));
  for (int sample = 0; sample < 2; ++sample) {
    const std::size_t before = processes.reads();
    for (const pid_t pid : asked) EXPECT_EQ(attribution.owner_of(pid).lease, LeaseId{7});
    EXPECT_LE(processes.reads() - before, 200u + 4 * 60);
    attribution.keep_only({});
  }
}

TEST_F(AttributionTest, DeepTreeIsWalkedInPieces) {
  const pid_t top = processes.spawn();
  hold(top);
  const pid_t last = chain(top, 200);
  int pieces = 0;
  for (bool done = false; !done; ++pieces) {
    const std::size_t before = processes.reads();
    std::size_t left = 20;
    done = attribution.walk_ahead(last, left);
    ASSERT_LE(processes.reads() - before, 20u);
    ASSERT_LT(pieces, 20);
  }
  EXPECT_GT(pieces, 9);
  const std::size_t before = processes.reads();
  EXPECT_EQ(attribution.owner_of(last).lease, LeaseId{7});
  EXPECT_LE(processes.reads() - before, 3u);
}

TEST_F(AttributionTest, AProcessThatCameToALeaseAfterAWalkIsStillFound) {
  const pid_t top = processes.spawn();
  const pid_t middle = chain(top, 50);
  const pid_t last = chain(middle, 50);
  std::size_t left = 80;
  EXPECT_FALSE(attribution.walk_ahead(last, left)) << "it has gone by the one in the middle";
  hold(middle);
  ++tables.membership_changes;
  EXPECT_EQ(attribution.owner_of(last).lease, LeaseId{7});
  EXPECT_FALSE(attribution.owner_of(top).lease) << "who is above it is not in the lease";
}

TEST_F(AttributionTest, ProcessJoinsTheLeaseOfItsAncestorLater) {
  const pid_t top = processes.spawn();
  const pid_t last = chain(top, 5);
  EXPECT_FALSE(attribution.owner_of(last).lease);
  hold(top);
  ++tables.membership_changes;
  EXPECT_EQ(attribution.owner_of(last).lease, LeaseId{7});
}

TEST_F(AttributionTest, AChangeOfControlGroupOrParentIsKnownAtTheNextSample) {
  const pid_t top = processes.spawn();
  const pid_t last = chain(top, 5);
  EXPECT_FALSE(attribution.owner_of(last).lease);
  hold(top);
  EXPECT_FALSE(attribution.owner_of(last).lease);
  attribution.keep_only({last});
  EXPECT_EQ(attribution.owner_of(last).lease, LeaseId{7});
}

}  // namespace
}  // namespace gpurota::daemon
