#include "cli/queue/find_named.h"

#include "cli/handles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using ::testing::HasSubstr;

proto::Lease lease(std::uint64_t id, uid_t uid, std::optional<std::string> name) {
  proto::Lease made;
  made.lease_id = LeaseId{id};
  made.uid = uid;
  made.user = uid == 1 ? "alice" : "bob";
  made.name = std::move(name);
  return made;
}

TEST(Handles, AreIdsOrNames) {
  EXPECT_EQ(lease_handle("L12")->value, 12u);
  EXPECT_EQ(lease_handle("12")->value, 12u);
  EXPECT_EQ(lease_handle("l12")->value, 12u);
  EXPECT_EQ(lease_handle("train7")->name, "train7");
  EXPECT_EQ(request_handle("r7")->value, 7u);
  EXPECT_EQ(request_handle("train7")->name, "train7");
}

TEST(Handles, LeaseAndRequestIdsAreNotInterchangeable) {
  EXPECT_FALSE(lease_handle("R7"));
  EXPECT_FALSE(request_handle("L7"));
  EXPECT_THAT(lease_handle("chat server").error().message, HasSubstr("or have a name of yours"));
}

TEST(FindNamed, PrefersTheUsersOwnLease) {
  const std::vector<proto::Lease> leases = {lease(4, 2, "train"), lease(5, 1, "train")};
  EXPECT_EQ(find_named(leases, "train", 1), LeaseId{5});
  EXPECT_EQ(find_named(leases, "train", 2), LeaseId{4});
}

TEST(FindNamed, AdministratorNeedsAUniqueName) {
  const std::vector<proto::Lease> leases = {lease(4, 2, "train"), lease(5, 1, "train"),
                                            lease(6, 2, "serve"), lease(7, 2, std::nullopt)};
  EXPECT_EQ(find_named(leases, "serve", 0), LeaseId{6});
  const auto several = find_named(leases, "train", 0);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().message, "'train' can be L4 of bob, L5 of alice: write which");
}

TEST(FindNamed, ErrorSaysHowToListNames) {
  const auto none = find_named(std::vector<proto::Request>(), "train", 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no request is called 'train' ('gpurota queue' lists them)");
}

}  // namespace
}  // namespace gpurota::cli
