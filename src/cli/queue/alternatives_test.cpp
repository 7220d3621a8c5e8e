#include "cli/queue/alternatives.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using Change = proto::AlternativeChange;

TEST(Alternatives, ShowTheGpusOnWhichTheRequestWouldStart) {
  EXPECT_EQ(alternatives_lines({{.change = Change::kSeconds,
                                 .seconds = 5400,
                                 .labels = {"1"},
                                 .remedy = "starts now with --timeout 1h30m"},
                                {.change = Change::kGpus,
                                 .gpus = 2,
                                 .labels = {"0", "3"},
                                 .remedy = "starts now with --gpus 2"},
                                {.change = Change::kUnknown, .remedy = "starts now with --magic"}}),
            "  starts now with --timeout 1h30m, on GPU 1\n"
            "  starts now with --gpus 2, on GPU 0,3\n"
            "  starts now with --magic\n");
}

TEST(Alternatives, AreEmptyWithAnOlderDaemon) {
  EXPECT_EQ(alternatives_lines({{.change = Change::kSwap, .labels = {"0"}}}), "");
}

TEST(Alternatives, AreSafeToPrint) {
  const std::string text = alternatives_lines({{.labels = {"\x1b[31m"}, .remedy = "\x1b[0m"}});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace gpurota::cli
