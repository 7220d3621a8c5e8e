#include "containers/cdi_spec.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace gpurota::containers {
namespace {

using nlohmann::json;

TEST(CdiSpec, EachNameIsADeviceWithAllThatTheContainerNeeds) {
  CdiEdits edits;
  edits.variables = {{"GPUROTA_LEASE", "L12"}};
  edits.mounts = {{"/run/gpurota/container", "/run/gpurota/container"}};
  edits.devices = {{"/m/dev/nvidia1", "/dev/nvidia1"}};
  const json spec = json::parse(cdi_text(kCdiLease, {"L12", "alice.web"}, edits));
  EXPECT_EQ(spec["cdiVersion"], "0.5.0");
  EXPECT_EQ(spec["kind"], "gpurota.dev/lease");
  ASSERT_EQ(spec["devices"].size(), 2U);
  EXPECT_EQ(spec["devices"][1]["name"], "alice.web");
  const json& given = spec["devices"][1]["containerEdits"];
  EXPECT_EQ(given["env"], json({"GPUROTA_LEASE=L12"}));
  EXPECT_EQ(given["mounts"][0]["hostPath"], "/run/gpurota/container");
  EXPECT_EQ(given["mounts"][0]["options"], json({"ro", "nosuid", "nodev", "bind"}));
  EXPECT_EQ(given["deviceNodes"][0]["path"], "/dev/nvidia1");
  EXPECT_EQ(given["deviceNodes"][0]["hostPath"], "/m/dev/nvidia1");
}

TEST(CdiSpec, HasNoEmptyListsWhichEnginesRefuse) {
  CdiEdits edits;
  edits.variables = {{"A", "b"}};
  const json spec = json::parse(cdi_text(kCdiGpu, {"any"}, edits));
  const json& given = spec["devices"][0]["containerEdits"];
  EXPECT_FALSE(given.contains("mounts"));
  EXPECT_FALSE(given.contains("deviceNodes"));
}

TEST(CdiSpec, NamesOfDifferentUsersNeverCollide) {
  EXPECT_EQ(own_cdi_name("alice", "web"), "alice.web");
  EXPECT_EQ(own_cdi_name("first.last", "web"), "first..last.web");
  EXPECT_NE(own_cdi_name("mal", "lory.web"), own_cdi_name("mal.lory", "web"));
  // Every user name of up to four characters, and every lease name, which begins with a letter.
  std::vector<std::string> texts = {""};
  for (std::size_t at = 0; at < texts.size() && texts[at].size() < 4; ++at) {
    for (const char sign : {'a', '.', '-'}) texts.push_back(texts[at] + sign);
  }
  std::map<std::string, std::string> seen;
  for (const std::string& user : texts) {
    for (const std::string& lease : texts) {
      if (user.empty() || lease.empty() || lease.front() != 'a') continue;
      const std::string both = user + "/" + lease;
      const auto [at, added] = seen.emplace(own_cdi_name(user, lease), both);
      EXPECT_TRUE(added) << at->second << " and " << both;
    }
  }
}

TEST(CdiSpec, NameThatAnEngineWouldRefuseIsInvalid) {
  EXPECT_TRUE(is_cdi_name("L12"));
  EXPECT_TRUE(is_cdi_name("alice.web-2"));
  EXPECT_TRUE(is_cdi_name("1000"));
  EXPECT_FALSE(is_cdi_name(""));
  EXPECT_FALSE(is_cdi_name("alice.web-"));
  EXPECT_FALSE(is_cdi_name("DOM\\alice.web"));
  EXPECT_FALSE(is_cdi_name("a/b"));
  EXPECT_FALSE(is_cdi_name("a=b"));
  EXPECT_FALSE(is_cdi_name("ä"));
}

}  // namespace
}  // namespace gpurota::containers
