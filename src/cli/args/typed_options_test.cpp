#include "cli/args/args.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using Words = std::vector<std::string>;

RunOptions typed_run(const Words& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? std::get<RunOptions>(arguments->command) : RunOptions{};
}

TEST(TypedOptions, OptionsThatChooseGpusAreKnown) {
  EXPECT_EQ(typed_run({"run", "-m8G", "--swap", "--note", "x", "--", "a"}).typed.placement,
            (Words{"--memory", "--swap"}));
  EXPECT_EQ(typed_run({"run", "-m8G", "--latency", "interactive", "--", "a"}).typed.of_lease,
            Words{"--latency"});
  const auto run = typed_run({"run", "--note", "x", "--timeout", "1h", "--", "a"});
  EXPECT_TRUE(run.typed.placement.empty());
  EXPECT_EQ(run.typed.of_lease, Words{"--note"});
  EXPECT_TRUE(run.typed.timeout);
  for (const Words& words :
       {Words{"--gpus", "1"}, Words{"--gpu-ids", "0"}, Words{"--memory", "1G"}, Words{"--swap"},
        Words{"--gpu-type", "h100"}, Words{"--gpu-class", "big"}, Words{"--min-memory", "1G"},
        Words{"--min-cc", "8.0"}, Words{"--near", "L1"}, Words{"--filler"}}) {
    Words line = {"run"};
    line.insert(line.end(), words.begin(), words.end());
    line.insert(line.end(), {"--", "a"});
    EXPECT_EQ(typed_run(line).typed.placement, Words{words.front()});
  }
}

}  // namespace
}  // namespace gpurota::cli
