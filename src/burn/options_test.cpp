#include "burn/options.h"

#include <gtest/gtest.h>

namespace gpurota::burn {
namespace {

using std::chrono::milliseconds;

TEST(BurnOptions, AreAllGpusAndMostOfTheirMemoryIfNoneIsGiven) {
  const auto options = parse_options({});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->gpu_ids.empty());
  EXPECT_EQ(options->memory.percent, 88);
  EXPECT_EQ(options->of_free, std::nullopt);
  EXPECT_EQ(parse_options({"--of-free", "80%"})->of_free, 80);
  EXPECT_FALSE(options->duration);
  EXPECT_FALSE(options->hold);
}

TEST(BurnOptions, AreTakenInBothSpellings) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--gpu-ids", "0,GPU-1", "-m", "2G", "--for", "10m", "--json"},
        std::vector<std::string>{"-i", "0", "--gpu-ids=GPU-1", "--memory=2G", "--for=10m",
                                 "--json"}}) {
    const auto options = parse_options(words);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->gpu_ids, (std::vector<std::string>{"0", "GPU-1"}));
    EXPECT_EQ(options->memory.bytes, gib(2));
    EXPECT_EQ(options->duration, milliseconds(600'000));
    EXPECT_TRUE(options->json);
  }
}

TEST(BurnOptions, InvalidValuesAreRefused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--what"},
                                                {"word"},
                                                {"--memory"},
                                                {"--memory", "0"},
                                                {"--of-free", "8G"},
                                                {"--of-free", "0%"},
                                                {"--for", "x"},
                                                {"--gpu-ids", "0,,1"},
                                                {"--gpu-ids", ""},
                                                {"--hold=1"},
                                                {"--hold", "--self-test"}}) {
    EXPECT_FALSE(parse_options(words)) << words.front();
  }
}

TEST(BurnOptions, AreExplained) {
  EXPECT_NE(parse_options({"--help"})->print.find("\n  -m, --memory SIZE "), std::string::npos);
  EXPECT_EQ(parse_options({"--memroy", "1G"}).error().message,
            "there is no option '--memroy': did you mean --memory? (see 'gpurota burn --help')");
}

TEST(BurnDuration, HasUnits) {
  EXPECT_EQ(*parse_duration("90"), milliseconds(90'000));
  EXPECT_EQ(*parse_duration("90s"), milliseconds(90'000));
  EXPECT_EQ(*parse_duration("1.5h"), milliseconds(5'400'000));
  EXPECT_EQ(*parse_duration("2d"), milliseconds(172'800'000));
  EXPECT_EQ(*parse_duration("250ms"), milliseconds(250));
}

TEST(BurnDuration, ZeroOrInfiniteIsRefused) {
  for (const char* text : {"", "s", "0", "0s", "-1s", "1x", "1.2.3s", "99999d", "1e9", "nan"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

}  // namespace
}  // namespace gpurota::burn
