#include "daemon/control/ended_leases.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

proto::Hold::Reply word(std::uint64_t id, uid_t uid) {
  proto::Hold::Reply reply;
  reply.lease.lease_id = LeaseId{id};
  reply.lease.uid = uid;
  return reply;
}

TEST(EndedLeases, KeepsTheLastOnes) {
  EndedLeases ended;
  for (std::uint64_t id = 1; id <= EndedLeases::kMost + 1; ++id) ended.add(word(id, 1000));
  EXPECT_EQ(ended.find(LeaseId{1}), nullptr);
  EXPECT_NE(ended.find(LeaseId{2}), nullptr);
  EXPECT_NE(ended.find(LeaseId{EndedLeases::kMost + 1}), nullptr);
}

TEST(EndedLeases, ManyEndsOfOneUserKeepThoseOfOthers) {
  EndedLeases ended;
  ended.add(word(1, 1000));
  for (std::uint64_t id = 2; id < 10 * EndedLeases::kMost; ++id) ended.add(word(id, 6666));
  ended.add(word(9999, 1001));
  EXPECT_NE(ended.find(LeaseId{1}), nullptr);
  EXPECT_NE(ended.find(LeaseId{9999}), nullptr);
}

}  // namespace
}  // namespace gpurota::daemon
