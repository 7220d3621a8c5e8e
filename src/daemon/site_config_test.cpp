#include "daemon/site_config.h"

#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

config::Loaded loaded(const std::string& text) { return config::parse({{"g.toml", text}}); }

class SiteConfigTest : public ::testing::Test {
 protected:
  SiteConfigTest() : gpus(one_gpu()), states(store, gpus) {}

  static std::vector<GpuInfo> one_gpu() {
    GpuInfo gpu;
    gpu.uuid = GpuUuid{"GPU-1"};
    gpu.memory = gib(24);
    return {gpu};
  }
  proto::ConfigSetting shown(const SiteConfig& site, const std::string& key,
                             bool everything = true) const {
    for (const auto& each : site.show(gpus, states, everything, "alice").settings) {
      if (each.key == key) return each;
    }
    return {};
  }

  testing::MemoryStore store;
  GpuTable gpus;
  GpuStates states;
};

TEST_F(SiteConfigTest, ReloadReportsAndAppliesChanges) {
  SiteConfig site(loaded("grace = \"1s\"\n"), "g.toml");
  const config::Config& seen = site.config();
  const auto changes = site.take_over(loaded("grace = \"2s\"\n[limits]\ngpus = 1\n"));
  EXPECT_THAT(changes, ElementsAre(config::Change{"grace", "1s", "2s", false},
                                   config::Change{"limits.gpus", "unlimited", "1", false}));
  EXPECT_EQ(seen.grace.count(), 2000);
  EXPECT_THAT(site.take_over(loaded("grace = \"2s\"\n[limits]\ngpus = 1\n")), IsEmpty());
}

TEST_F(SiteConfigTest, SettingThatNeedsARestartStaysPending) {
  SiteConfig site(loaded("group = \"a\"\n"), "g.toml");
  EXPECT_THAT(site.take_over(loaded("group = \"b\"\n")),
              ElementsAre(config::Change{"group", "a", "b", true}));
  EXPECT_EQ(site.config().group, "a");
  EXPECT_THAT(site.pending(), ElementsAre(config::Change{"group", "a", "b", true}));
  EXPECT_EQ(shown(site, "group").value, "a");
  EXPECT_EQ(shown(site, "group").at_restart, "b");
  EXPECT_THAT(site.take_over(loaded("group = \"a\"\n")), IsEmpty());
  EXPECT_THAT(site.pending(), IsEmpty());
}

TEST_F(SiteConfigTest, EachValueIsShownWithItsSource) {
  SiteConfig site(loaded("\ngrace = \"5s\"\n[turns.gpu.0]\ncapacity = \"20G\"\n"), "g.toml");
  EXPECT_EQ(shown(site, "privacy").source, proto::ConfigSource::kDefault);
  EXPECT_EQ(shown(site, "grace").source, proto::ConfigSource::kFile);
  EXPECT_EQ(shown(site, "grace").line, 2);
  EXPECT_EQ(shown(site, "turns.gpu.0.capacity").value, "20G");
  ports::StoredGpuState state;
  state.uuid = GpuUuid{"GPU-1"};
  state.capacity = SizeSpec{gib(16), 0};
  state.turns = "off";
  ASSERT_TRUE(states.set(state));
  EXPECT_EQ(shown(site, "turns.gpu.0.capacity").value, "16G");
  EXPECT_EQ(shown(site, "turns.gpu.0.capacity").source, proto::ConfigSource::kSet);
  EXPECT_EQ(shown(site, "turns.gpu.0.mode").value, "off");
  EXPECT_EQ(shown(site, "turns.gpu.0.quantum").key, "") << "nobody has set it";
}

TEST_F(SiteConfigTest, OthersSeeNothingAboutUsersButThemselves) {
  SiteConfig site(loaded("[limits.user.alice]\ngpus = 1\n[limits.user.bob]\ngpus = 2\n"
                         "[limits.group.g]\ngpus = 3\n"
                         "[[watch.rule]]\nusers = [\"bob\"]\naction = \"stop\"\n"),
                  "g.toml");
  EXPECT_EQ(shown(site, "limits.user.bob.gpus", false).key, "");
  EXPECT_EQ(shown(site, "watch.rule[1]", false).key, "");
  EXPECT_EQ(shown(site, "limits.user.alice.gpus", false).value, "1");
  EXPECT_EQ(shown(site, "limits.group.g.gpus", false).value, "3");
  EXPECT_EQ(site.show(gpus, states, false, "alice").hidden, 2u);
  EXPECT_EQ(site.show(gpus, states, true, "root").hidden, 0u);
}

TEST_F(SiteConfigTest, SummaryNamesTheFiles) {
  EXPECT_EQ(SiteConfig(loaded(""), "g.toml").summary(), "g.toml");
  EXPECT_EQ(SiteConfig(config::parse({}), "g.toml").summary(), "defaults (g.toml is not there)");
  EXPECT_EQ(
      SiteConfig(config::parse({{"g.toml", ""}, {"g.toml.d/a.toml", ""}}), "g.toml").summary(),
      "g.toml and 1 drop-in");
}

}  // namespace
}  // namespace gpurota::daemon
