#include "kube/dra/dra_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpurota::kube {
namespace {

TEST(DraOptionsTest, SayWhereTheApiServerIs) {
  const auto options = parse_dra_options({"--api-server", "https://10.96.0.1:443/", "--token-file",
                                          "t", "--ca-file", "c", "--node-name", "n1"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->api, (ApiOptions{"n1", {"https://10.96.0.1:443", "t", "c"}}));
  EXPECT_EQ(options->rules.unit, gib(1));
  EXPECT_FALSE(options->rules.mixed);
}

TEST(DraOptionsTest, LetSlicesAndTurnsBeOnOneGpu) {
  const auto options =
      parse_dra_options({"--api-server", "https://x", "--node-name", "n1", "--mixed"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->rules.mixed);
}

TEST(DraOptionsTest, RefuseATokenInTheClearForAnotherMachine) {
  EXPECT_TRUE(parse_dra_options({"--node-name", "n", "--api-server", "http://127.0.0.1:8080"}));
  for (const char* server : {"http://10.0.0.1", "http://127.0.0.1.example.org", "ftp://x", "x"}) {
    EXPECT_FALSE(parse_dra_options({"--node-name", "n", "--api-server", server})) << server;
  }
}

TEST(DraOptionsTest, InvalidOptionsAreRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--token-file", "t"}, {"--no-such"},          {"extra"},
      {"--review", "0"},     {"--node-name", "A/b"}, {"--memory-unit", "1K"},
      {"--gpus-by", "magic"}};
  for (auto words : wrong) {
    if (std::string_view(words.front()) != "--token-file") {
      words.insert(words.begin(), {"--api-server", "https://x"});
    }
    EXPECT_FALSE(parse_dra_options(words)) << words.back();
  }
}

}  // namespace
}  // namespace gpurota::kube
