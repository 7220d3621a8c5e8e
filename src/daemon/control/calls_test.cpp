#include "daemon/control/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpurota::daemon {
namespace {

using ::testing::HasSubstr;

struct Entry {
  struct {
    std::string name;
  } spec;
  uid_t uid = 0;
  std::string user;
  bool removed = false;
  bool is_removed() const { return removed; }
};

const std::map<int, Entry> kEntries = {{1, {{"web"}, 1000, "alice"}},
                                       {2, {{"web"}, 1001, "bob"}},
                                       {3, {{"old"}, 1000, "alice", true}},
                                       {4, {{"hers"}, 1000, "alice"}}};

Meant meant(const std::string& name, std::optional<std::string> user, uid_t caller,
            bool administrator) {
  const auto exists = [](const std::string& who) { return who != "carl"; };
  const std::string own = caller == 1001 ? "bob" : caller == 0 ? "root" : "alice";
  return {"job", name, std::move(user), caller, own, administrator, exists};
}

Result<const Entry*> find(const std::string& name, std::optional<std::string> user, uid_t caller,
                          bool administrator = false) {
  return find_meant(kEntries, meant(name, std::move(user), caller, administrator));
}

TEST(FindMeant, MeansTheCallersOwnUnlessAUserIsNamed) {
  EXPECT_EQ((*find("web", {}, 1001))->user, "bob");
  EXPECT_EQ((*find("web", "bob", 1001))->user, "bob");
  EXPECT_EQ((*find("web", "alice", 0, true))->user, "alice");
  EXPECT_EQ((*find("web", "1001", 0, true))->user, "bob");
  EXPECT_FALSE(find("web", {}, 0, true)) << "an administrator's own";
  EXPECT_FALSE(find("old", {}, 1000)) << "it is being removed";
}

TEST(FindMeant, LeasesOfOthersAreNotRevealed) {
  const auto there = find("hers", "alice", 1001);
  const auto nowhere = find("hers", "carol", 1001);
  ASSERT_FALSE(there);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(there.error().code, Code::kNotFound);
  EXPECT_EQ(nowhere.error().code, Code::kNotFound);
  EXPECT_EQ(there.error().message, nowhere.error().message);
  EXPECT_THAT(there.error().message, HasSubstr("only administrators"));
}

TEST(FindMeant, NameOfTheCallerMeansTheirOwnLeases) {
  EXPECT_EQ(find("hers", "bob", 1001).error().message,
            "you have no job hers ('gpurota job list' shows yours)");
}

TEST(FindMeant, AdministratorSeesThatANameIsUnknown) {
  EXPECT_EQ(find("hers", "carol", 0, true).error().message,
            "they have no job hers ('gpurota job list --user carol' shows theirs)");
  EXPECT_THAT(find("hers", "carl", 0, true).error().message,
              HasSubstr("there is no user \"carl\": --user takes"));
  EXPECT_THAT(find("hers", "carl", 1001).error().message, HasSubstr("only administrators"));
}

TEST(CheckMeant, EmptyListIsNoErrorButAnUnknownUserIs) {
  const auto list = [](const char* user, uid_t caller, bool found) {
    return check_meant(meant("", user, caller, caller == 0), found);
  };
  EXPECT_TRUE(list("bob", 1001, false));
  EXPECT_TRUE(list("carol", 0, false));
  EXPECT_TRUE(list("carl", 0, true)) << "their account is gone, what they left is not";
  EXPECT_THAT(list("carl", 0, false).error().message, HasSubstr("there is no user"));
  EXPECT_THAT(list("alice", 1001, true).error().message, HasSubstr("no jobs: only administrators"));
}

}  // namespace
}  // namespace gpurota::daemon
