#include "cli/alternatives.h"

#include "cli/time_text.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using Change = proto::AlternativeChange;

std::vector<proto::Alternative> all_kinds() {
  return {{.change = Change::kSeconds, .seconds = 5400, .labels = {"1"}},
          {.change = Change::kAnyGpu, .labels = {"0:1"}},
          {.change = Change::kMemory, .memory_bytes = gib(9), .labels = {"0"}},
          {.change = Change::kMemory, .memory_bytes = mib(768), .labels = {"0"}},
          {.change = Change::kSwap, .labels = {"0"}},
          {.change = Change::kGpus, .gpus = 2, .labels = {"0", "3"}}};
}

TEST(Alternatives, AreLinesThatNameTheOption) {
  EXPECT_EQ(alternatives_lines(all_kinds()),
            "  with --timeout 1h30m it could start now on GPU 1\n"
            "  without --gpu-ids it could start now on GPU 0:1\n"
            "  with --memory 9G it could start now on GPU 0\n"
            "  with --memory 768M it could start now on GPU 0\n"
            "  with --swap it could start now on GPU 0\n"
            "  with --gpus 2 it could start now on GPU 0,3\n");
  EXPECT_TRUE(parse_duration("1h30m")) << "what is advised is understood";
}

TEST(Alternatives, AreOneLineBesideARefusal) {
  auto ways = all_kinds();
  EXPECT_EQ(alternatives_hint({ways[0]}), "it could start now with --timeout 1h30m (on GPU 1)");
  EXPECT_EQ(alternatives_hint({ways[0], ways[2], ways[4]}),
            "it could start now with --timeout 1h30m (on GPU 1), with --memory 9G (on GPU 0) or "
            "with --swap (on GPU 0)");
}

TEST(Alternatives, OfADaemonThatKnowsMoreAreLeftOut) {
  const proto::Alternative unknown{.change = Change::kUnknown, .labels = {"0"}};
  EXPECT_EQ(alternatives_lines({unknown}), "");
  EXPECT_EQ(alternatives_hint({unknown}), "");
}

}  // namespace
}  // namespace gpurota::cli
