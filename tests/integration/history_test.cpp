// Values over time, through the control socket.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

using ::testing::HasSubstr;

TEST(History, MatchesTheStatusOfTheGpu) {
  RunningDaemon daemon;
  const GpuUuid gpu = daemon.call(proto::Status{})->gpus.at(0).uuid;
  daemon.probe.set_load(gpu, 70);
  GpuFigures figures;
  figures.power_mw = 250'000;
  figures.power_limit_mw = 700'000;
  figures.temperature = 55;
  figures.clock_limits = static_cast<std::uint32_t>(ClockLimit::kPower);
  daemon.probe.set_figures(gpu, figures);
  ASSERT_TRUE(eventually([&] {
    const auto history = daemon.call(proto::History{});
    if (!history || history->gpus.size() != 1 || history->gpus[0].points.empty()) return false;
    const proto::GpuPoint& point = history->gpus[0].points.back();
    return point.max_utilisation_percent == 70 && point.max_power_mw == 250'000 &&
           point.temperature_celsius && point.clock_limits == std::vector<std::string>{"power"};
  }));
  const proto::Gpu shown = daemon.call(proto::Status{})->gpus.at(0);
  EXPECT_EQ(shown.power_mw, 250'000);
  EXPECT_EQ(shown.power_limit_mw, 700'000);
  EXPECT_EQ(shown.temperature_celsius, 55);
  EXPECT_FALSE(shown.slowdown_celsius);
}

TEST(History, UnreadableGpuHasAGapInItsHistory) {
  RunningDaemon daemon;
  const GpuUuid gpu = daemon.call(proto::Status{})->gpus.at(0).uuid;
  const auto last_load = [&] {
    const auto history = daemon.call(proto::History{});
    const bool any = history && history->gpus.size() == 1 && !history->gpus[0].points.empty();
    return any ? history->gpus[0].points.back().max_utilisation_percent : std::nullopt;
  };
  daemon.probe.set_load(gpu, 70);
  ASSERT_TRUE(eventually([&] { return last_load() == 70; }));
  daemon.probe.set_error(gpu, "it has fallen off the bus");
  ASSERT_TRUE(eventually(
      [&] { return daemon.call(proto::Status{})->gpus.at(0).state == proto::GpuState::kError; }));
  // Unknown values are not replaced by the last known ones: the history gets seconds without
  // values.
  ASSERT_TRUE(eventually([&] {
    const auto history = daemon.call(proto::History{});
    return history && history->gpus.size() == 1 && !history->gpus[0].points.empty() &&
           history->until - history->gpus[0].points.back().time >= std::chrono::seconds(4);
  }));
  daemon.probe.set_load(gpu, 20);
  daemon.probe.set_error(gpu, "");
  EXPECT_TRUE(eventually([&] { return last_load() == 20; }));
}

TEST(History, EndedLeaseKeepsItsHistoryAndAnUnknownLeaseHasNone) {
  RunningDaemon daemon;
  LeaseId id;
  {
    client::Connection connection = daemon.connect();
    id = daemon.acquire_slice(connection, gib(2)).lease.lease_id;
    const proto::History call{.lease_ids = {{id}}};
    ASSERT_TRUE(eventually([&] {
      const auto history = daemon.call(call);
      return history && history->gpus.empty() && !history->leases.at(0).points.empty();
    }));
  }
  ASSERT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
  const auto history = daemon.call(proto::History{.lease_ids = {{id, LeaseId{4711}}}});
  ASSERT_TRUE(history);
  EXPECT_FALSE(history->leases.at(0).points.empty());
  EXPECT_TRUE(history->leases.at(1).points.empty());
}

TEST(History, InvalidRangesAreRefused) {
  RunningDaemon daemon;
  const auto refusal = [&](const proto::History& call) {
    const auto reply = daemon.call(call);
    return reply ? std::string() : reply.error().message;
  };
  proto::History backwards;
  backwards.since = WallTime(std::chrono::hours(2));
  backwards.until = WallTime(std::chrono::hours(1));
  EXPECT_THAT(refusal(backwards), HasSubstr("begins (`since`) before it ends"));
  EXPECT_THAT(refusal({.points = 1}), HasSubstr("is not from 2 to 1000"));
  EXPECT_THAT(refusal({.points = 1001}), HasSubstr("is not from 2 to 1000"));
  EXPECT_THAT(refusal({.gpu_ids = {{"7"}}}), HasSubstr("7"));
  std::vector<LeaseId> many;
  for (std::uint64_t i = 1; i <= 33; ++i) many.push_back({i});
  EXPECT_THAT(refusal({.lease_ids = many}), HasSubstr("too many at once"));
}

TEST(History, HasNoMorePointsThanAskedForWhateverTheRange) {
  RunningDaemon daemon;
  for (const auto span :
       {std::chrono::hours(1), std::chrono::hours(48), std::chrono::hours(9999)}) {
    proto::History call;
    call.until = std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now());
    call.since = *call.until - span;
    call.points = 10;
    const auto history = daemon.call(call);
    ASSERT_TRUE(history) << history.error().message;
    EXPECT_GE(history->step_seconds, 360);
    EXPECT_LE(history->gpus.at(0).points.size(), 10u);
  }
}

}  // namespace
}  // namespace gpurota::testing
