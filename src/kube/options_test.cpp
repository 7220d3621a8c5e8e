#include "kube/options.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::kube {
namespace {

TEST(PluginOptions, HaveDefaults) {
  const auto options = parse_options({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->names.at(Resource::kMemory), "gpurota.dev/memory");
  EXPECT_EQ(options->rules.unit, gib(1));
  EXPECT_FALSE(options->rules.turn_memory);
}

TEST(PluginOptions, RenameAResourceOrLeaveItOut) {
  const auto options = parse_options({"--turn-resource", "nvshare.com/gpu", "--gpu-resource="});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->names.at(Resource::kTurn), "nvshare.com/gpu");
  EXPECT_EQ(options->names.count(Resource::kGpu), 0u);
}

TEST(PluginOptions, OptionsDescribeTurns) {
  const auto options = parse_options({"--turns", "3", "--turn-memory", "4G", "--gpus-by", "cdi"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rules.turns, 3);
  EXPECT_EQ(options->rules.turn_memory, gib(4));
  EXPECT_EQ(options->giver, GpuGiver::kCdi);
}

TEST(PluginOptions, SayWhereEventsGo) {
  const auto options =
      parse_options({"--events", "--api-server", "https://10.96.0.1/", "--node-name", "n1"});
  ASSERT_TRUE(options && options->api);
  EXPECT_EQ(*options->api, (ApiOptions{"n1", {"https://10.96.0.1", "", ""}}));
  EXPECT_FALSE(parse_options({"--node-name", "n1"})) << "for nothing";
  EXPECT_FALSE(
      parse_options({"--events", "--node-name", "n1", "--api-server", "http://10.96.0.1"}));
  EXPECT_FALSE(parse_options({})->api);
}

TEST(PluginOptions, InvalidOptionsAreRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--turns", "0"},
      {"--turns", "two"},
      {"--turns"},
      {"--no-such"},
      {"extra"},
      {"--gpus-by", "magic"},
      {"--memory-unit", "1K"},
      {"--memory-resource", "memory"},
      {"--memory-resource", "/"},
      {"--memory-resource", "gpurota.dev/gpu"},
      {"--gpu-resource=", "--memory-resource=", "--turn-resource="}};
  for (const auto& words : wrong) EXPECT_FALSE(parse_options(words)) << words.front();
}

}  // namespace
}  // namespace gpurota::kube
