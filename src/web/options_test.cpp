#include "web/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gpurota::web {
namespace {

using ::testing::HasSubstr;

std::string mistake(std::vector<std::string> words) {
  const auto options = parse_options(std::move(words));
  return options ? "" : options.error().message;
}

TEST(Options, DefaultListensOnLoopbackOnly) {
  const auto options = parse_options({});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->listen, (ListenAddress{"127.0.0.1", 9836}));
  EXPECT_EQ(options->site.level, PageLevel::kTotals);
  EXPECT_FALSE(options->has_tls());
  EXPECT_EQ(page_url(*options, 9836), "http://127.0.0.1:9836/");
}

TEST(Options, PublicAddressNeedsACertificateOrAnExplicitOption) {
  EXPECT_THAT(mistake({"--listen", "192.0.2.7:9836"}), HasSubstr("--plain"));
  EXPECT_EQ(mistake({"--listen", "192.0.2.7:9836", "--plain"}), "");
  EXPECT_EQ(mistake({"--listen", "[::1]:9836"}), "");
  EXPECT_EQ(mistake({"--listen", "0.0.0.0:1", "--tls-certificate", "c", "--tls-key", "k"}), "");
  EXPECT_THAT(mistake({"--tls-certificate", "c"}), HasSubstr("together"));
  EXPECT_THAT(mistake({"--tls-certificate", "c", "--tls-key", "k", "--plain"}),
              HasSubstr("not both"));
}

TEST(Options, AcceptsTheAddressOfThePage) {
  EXPECT_EQ(page_url(*parse_options({"--url", "https://gpu1.example.org"}), 1),
            "https://gpu1.example.org/");
  EXPECT_EQ(page_url(*parse_options({"--listen", "[::1]:1"}), 2), "http://[::1]:2/");
  EXPECT_EQ(page_url(*parse_options({"--tls-certificate", "c", "--tls-key", "k"}), 3),
            "https://127.0.0.1:3/");
  for (const char* url : {"gpu1.example.org", "ftp://gpu1/", "http://a b/", "http://a/#b", ""}) {
    EXPECT_THAT(mistake({"--url", url}), HasSubstr("not the address of a page")) << url;
  }
}

TEST(Options, UnknownOptionOrMissingValueIsReported) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--nonsense"}, {"--listen"}, {"-x"}}) {
    EXPECT_THAT(mistake(words), HasSubstr("--help")) << words.front();
  }
  EXPECT_THAT(mistake({"--allow-hots", "a"}), HasSubstr("did you mean --allow-host?"));
  EXPECT_THAT(mistake({"word"}), HasSubstr("unexpected argument 'word'"));
  EXPECT_THAT(parse_options({"-h"})->print, HasSubstr("Usage:"));
  EXPECT_THAT(parse_options({"--version"})->print, HasSubstr("gpurota-web "));
}

}  // namespace
}  // namespace gpurota::web
