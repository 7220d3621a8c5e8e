#include "cli/top/model.h"

#include "cli/status/status_samples_test.h"
#include "cli/text/bars.h"
#include "cli/top/top_samples_test.h"
#include "cli/top/turns_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli::topview {
namespace {

using cli::samples::kNow;
using ::testing::ElementsAre;

Answers answers_of(int load, double used) {
  cli::samples::Machine machine(1);
  machine.lend(1, "alice", {0}, std::chrono::minutes(1), used, 20);
  machine.gpu(0).utilisation_percent = load;
  return {.when = kNow, .status = machine.reply};
}

TEST(TopModel, KeepsItsSamples) {
  Model model;
  model.take(answers_of(10, 5));
  model.take(answers_of(90, 10));
  EXPECT_THAT(model.history(GpuUuid{"GPU-0"}).load, ElementsAre(10, 90));
  EXPECT_THAT(model.history(LeaseId{1}, GpuUuid{"GPU-0"}).memory, ElementsAre(25, 50));
}

TEST(TopModel, KeepsOnlyTheLastSamples) {
  Model model;
  for (std::size_t i = 0; i < Model::kMostSamples + 5; ++i) model.take(answers_of(1, 1));
  EXPECT_EQ(model.history(GpuUuid{"GPU-0"}).load.size(), Model::kMostSamples);
}

TEST(TopModel, RemovesSamplesOfEndedLeases) {
  Model model;
  model.take(answers_of(10, 5));
  Answers without = answers_of(10, 5);
  without.status.leases.clear();
  model.take(std::move(without));
  EXPECT_TRUE(model.history(LeaseId{1}, GpuUuid{"GPU-0"}).memory.empty());
}

TEST(TopModel, KeepsTheLastAnswersOfADaemonThatIsGone) {
  Model model;
  EXPECT_FALSE(model.has_answers());
  model.take(answers_of(10, 5));
  model.lose("it is gone");
  EXPECT_EQ(model.trouble(), "it is gone");
  EXPECT_EQ(model.answers().status.gpus.size(), 1u);
  model.take(answers_of(10, 5));
  EXPECT_EQ(model.trouble(), "");
}

TEST(TopTurns, NameTheHolderAndWhoIsNext) {
  const Model model = samples::machine("turns");
  const proto::TurnGpu& gpu = *model.find_turns(GpuUuid{"GPU-0"});
  EXPECT_EQ(turns_line(gpu, kNow),
            "turn: L4 of carol, 3.2 s of 18.6 s left; next: L3 of bob, in 3.2 s; then L5 of dave, "
            "in 21.8 s");
  EXPECT_EQ(turn_of(gpu, LeaseId{4}, kNow), "now 3.2 s");
  EXPECT_EQ(turn_of(gpu, LeaseId{3}, kNow), "next 3.2 s");
  EXPECT_EQ(turn_of(gpu, LeaseId{5}, kNow), "2nd 21.8 s");
  EXPECT_EQ(turn_of(gpu, LeaseId{6}, kNow), "-");
  EXPECT_EQ(turn_of(gpu, LeaseId{4}, kNow + std::chrono::seconds(9)), "now 0.0 s");
}

std::string bar(std::size_t columns, const std::vector<BarPart>& parts) {
  Grid grid(columns, 1);
  draw_bar(grid, 0, 0, columns, Bytes(100), parts);
  return plain_text(grid);
}

TEST(TopBars, ShowEachPartByItsCharacter) {
  EXPECT_EQ(bar(12, {{Bytes(50), "#", Tone::kSlice}, {Bytes(20), "%", Tone::kSwap}}),
            "[#####%%···]\n");
  EXPECT_EQ(bar(12, {{Bytes(1), "#", Tone::kSlice}}), "[#·········]\n");
  EXPECT_EQ(bar(12, {{Bytes(100), "#", Tone::kSlice}, {Bytes(50), "x", Tone::kForeign}}),
            "[##########]\n");
}

TEST(TopBars, GraphsEndAtTheRight) {
  Grid grid(5, 1);
  draw_graph(grid, 0, 0, 5, 1, {0, 50, -1, 100}, Tone::kGraph);
  EXPECT_EQ(plain_text(grid), " ▁▄ █\n");
}

TEST(TopGrid, CutsWideTextBetweenCharacters) {
  Grid grid(5, 1);
  grid.put(0, 0, "王小明");
  EXPECT_EQ(plain_text(grid), "王小…\n");
}

TEST(TopGrid, HasNoHalfOfAWideCharacter) {
  Grid grid(6, 1);
  grid.put(0, 0, "王小明");
  grid.put(1, 0, "x");
  grid.put(4, 0, "y");
  EXPECT_EQ(plain_text(grid), " x小y\n");
}

TEST(TopGrid, KeepsCombiningCharacters) {
  Grid grid(3, 1);
  grid.put(0, 0, "e\u0301x");
  EXPECT_EQ(grid.at(0, 0).text, "e\u0301");
  EXPECT_EQ(grid.at(1, 0).text, "x");
}

TEST(TopGrid, HasCharactersForTerminalsWithoutUtf8) {
  Grid grid(6, 1);
  grid.put(0, 0, "█·é王x");
  grid.make_ascii();
  EXPECT_EQ(plain_text(grid), "#.?? x\n");
}

TEST(TopGrid, ColoursEndWithTheLine) {
  Grid grid(3, 1);
  grid.put(0, 0, "ab", {Tone::kBad});
  EXPECT_EQ(coloured_text(grid), "\033[0m\033[31mab\033[0m\n");
}

}  // namespace
}  // namespace gpurota::cli::topview
