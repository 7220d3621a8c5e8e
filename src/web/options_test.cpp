#include "web/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <getopt.h>

namespace gpurota::web {
namespace {

using ::testing::HasSubstr;

Result<Options> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "gpurota-web");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  optind = 0;  // from the beginning
  return parse_options(static_cast<int>(words.size()), argv.data());
}

std::string mistake(std::vector<std::string> words) {
  const auto options = parse(std::move(words));
  return options ? "" : options.error().message;
}

TEST(Options, WithoutAnyItListensAtThisMachineOnly) {
  const auto options = parse({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->listen, (ListenAddress{"127.0.0.1", 9836}));
  EXPECT_EQ(options->site.level, PageLevel::kTotals);
  EXPECT_FALSE(options->has_tls());
  EXPECT_EQ(page_url(*options, 9836), "http://127.0.0.1:9836/");
}

TEST(Options, WhereOthersCanConnectItWantsACertificateOrIsToldToDoWithout) {
  EXPECT_THAT(mistake({"--listen", "192.0.2.7:9836"}), HasSubstr("--plain"));
  EXPECT_EQ(mistake({"--listen", "192.0.2.7:9836", "--plain"}), "");
  EXPECT_EQ(mistake({"--listen", "[::1]:9836"}), "");
  EXPECT_EQ(mistake({"--listen", "0.0.0.0:1", "--tls-certificate", "c", "--tls-key", "k"}), "");
  EXPECT_THAT(mistake({"--tls-certificate", "c"}), HasSubstr("together"));
  EXPECT_THAT(mistake({"--tls-certificate", "c", "--tls-key", "k", "--plain"}),
              HasSubstr("not both"));
}

TEST(Options, TheAddressOfThePageIsWhatPeopleType) {
  EXPECT_EQ(page_url(*parse({"--url", "https://gpu1.example.org"}), 1),
            "https://gpu1.example.org/");
  EXPECT_EQ(page_url(*parse({"--listen", "[::1]:1"}), 2), "http://[::1]:2/");
  EXPECT_EQ(page_url(*parse({"--tls-certificate", "c", "--tls-key", "k"}), 3),
            "https://127.0.0.1:3/");
  for (const char* url : {"gpu1.example.org", "ftp://gpu1/", "http://a b/", "http://a/#b", ""}) {
    EXPECT_THAT(mistake({"--url", url}), HasSubstr("not the address of a page")) << url;
  }
}

TEST(Options, WhatIsUnknownOrMissesItsValueIsSaid) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--nonsense"}, {"--listen"}, {"-x"}}) {
    EXPECT_THAT(mistake(words), HasSubstr("--help")) << words.front();
  }
  EXPECT_THAT(mistake({"word"}), HasSubstr("takes no arguments"));
  EXPECT_THAT(parse({"-h"})->print, HasSubstr("Usage:"));
  EXPECT_THAT(parse({"--version"})->print, HasSubstr("gpurota-web "));
}

}  // namespace
}  // namespace gpurota::web
