#include "kube/dra/dra_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::kube {
namespace {

Result<DraOptions> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "gpurota-dra");
  std::vector<char*> argv;
  for (const char* word : words) argv.push_back(const_cast<char*>(word));
  return parse_dra_options(static_cast<int>(argv.size()), argv.data());
}

TEST(DraOptionsTest, SayWhereTheApiServerIs) {
  const auto options = parse({"--api-server", "https://10.96.0.1:443/", "--token-file", "t",
                              "--ca-file", "c", "--node-name", "n1"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->api, (ApiOptions{"n1", {"https://10.96.0.1:443", "t", "c"}}));
  EXPECT_EQ(options->rules.unit, gib(1));
  EXPECT_FALSE(options->rules.mixed);
}

TEST(DraOptionsTest, LetSlicesAndTurnsBeOnOneGpu) {
  const auto options = parse({"--api-server", "https://x", "--node-name", "n1", "--mixed"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->rules.mixed);
}

TEST(DraOptionsTest, RefuseATokenInTheClearForAnotherMachine) {
  EXPECT_TRUE(parse({"--node-name", "n", "--api-server", "http://127.0.0.1:8080"}));
  for (const char* server : {"http://10.0.0.1", "http://127.0.0.1.example.org", "ftp://x", "x"}) {
    EXPECT_FALSE(parse({"--node-name", "n", "--api-server", server})) << server;
  }
}

TEST(DraOptionsTest, RefuseWhatMakesNoSense) {
  const std::vector<std::vector<const char*>> wrong = {
      {"--token-file", "t"}, {"--no-such"},          {"extra"},
      {"--review", "0"},     {"--node-name", "A/b"}, {"--memory-unit", "1K"},
      {"--gpus-by", "magic"}};
  for (auto words : wrong) {
    if (std::string_view(words.front()) != "--token-file") {
      words.insert(words.begin(), {"--api-server", "https://x"});
    }
    EXPECT_FALSE(parse(words)) << words.back();
  }
}

}  // namespace
}  // namespace gpurota::kube
