#include "cli/top/rows.h"

#include "cli/status/status_samples_test.h"
#include "cli/top/frame.h"
#include "cli/top/top_samples_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli::topview {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The leases of a machine with three on one GPU, in the order of their rows.
std::vector<std::uint64_t> order_by(Sort sort) {
  cli::samples::Machine machine(1);
  machine.lend(1, "carol", {0}, std::chrono::minutes(5), 2, 10);
  machine.lend(2, "alice", {0}, std::chrono::minutes(1), 9, 10);
  machine.lend(3, "bob", {0}, std::chrono::minutes(9), 4, 10);
  Model model;
  model.take({.when = cli::samples::kNow, .status = machine.reply});
  std::vector<std::uint64_t> order;
  for (const Row& row : make_rows(model, {.sort = sort}).machine) {
    if (row.about.lease) order.push_back(row.about.lease->value);
  }
  return order;
}

TEST(TopRows, LeasesAreSorted) {
  EXPECT_THAT(order_by(Sort::kLease), ElementsAre(1, 2, 3));
  EXPECT_THAT(order_by(Sort::kUser), ElementsAre(2, 3, 1));
  EXPECT_THAT(order_by(Sort::kMemory), ElementsAre(2, 3, 1));
  EXPECT_THAT(order_by(Sort::kTime), ElementsAre(3, 1, 2));
}

TEST(TopRows, AFilterOfAGpuShowsItAlone) {
  const Model model = samples::machine("eight");
  const Rows rows = make_rows(model, {.filter = "gpu 6"});
  ASSERT_EQ(rows.machine.size(), 1u);
  EXPECT_EQ(rows.machine[0].about.gpu, GpuUuid{"GPU-6"});
}

TEST(TopRows, EachLeaseOfStatusIsThere) {
  for (const auto& sample : samples::all_machines()) {
    const Rows rows = make_rows(samples::machine(sample.name), {});
    for (const proto::Lease& lease : sample.answers.status.leases) {
      const bool shown = std::any_of(rows.machine.begin(), rows.machine.end(), [&](const Row& row) {
        return row.about.lease == lease.lease_id;
      });
      EXPECT_TRUE(shown) << sample.name << " " << to_string(lease.lease_id);
    }
  }
}

TEST(TopRows, UseWithoutALeaseHasRowsOfItsProcesses) {
  Answers answers = samples::machine("eight").answers();
  proto::Process& process = answers.processes.processes.emplace_back();
  process.pid = 28919;
  process.user = "gu_bob";
  process.gpu_uuid = GpuUuid{"GPU-1"};
  process.command = {{"python3", "sweep.py"}};
  Model model;
  model.take(std::move(answers));
  std::string text;
  for (const Row& row : make_rows(model, {.processes = true}).machine) {
    if (row.kind == RowKind::kText) text += row.cells.front().text;
  }
  EXPECT_THAT(text, HasSubstr("└─ pid 28919 gu_bob memory not known python3 sweep.py"));
}

TEST(TopRows, NothingIsThereBeforeTheDaemonHasAnswered) {
  const Model model;
  EXPECT_TRUE(make_rows(model, {}).machine.empty());
  const std::string text = plain_text(draw(model, {}, {.width = 60, .height = 5, .live = true}));
  EXPECT_THAT(text, HasSubstr("asking the daemon"));
}

TEST(TopRows, SilentDaemonIsReportedBelowItsLastAnswer) {
  Model model = samples::machine("one");
  model.lose("it was stopped\ntry again");
  const std::string text = plain_text(draw(model, {}, {.width = 80, .height = 8, .live = true}));
  EXPECT_THAT(text, HasSubstr("GPU 0  free"));
  EXPECT_THAT(text, HasSubstr("no answer, trying again: it was stopped try again"));
}

}  // namespace
}  // namespace gpurota::cli::topview
