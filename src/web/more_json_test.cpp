#include "web/more_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

proto::ReportRow a_row(const char* key, int held, int used, int idle) {
  proto::ReportRow row;
  row.key = key;
  row.gpu_seconds = static_cast<std::uint64_t>(held);
  row.used_gpu_seconds = static_cast<std::uint64_t>(used);
  row.idle_gpu_seconds = static_cast<std::uint64_t>(idle);
  return row;
}

TEST(HoursJson, HasAllGpusOfTheMachineAndUsersWithNamesOnly) {
  std::vector<proto::Gpu> gpus(2);
  gpus[0].uuid = {"GPU-0"};
  gpus[1].uuid = {"GPU-1"};
  gpus[1].label = "1";
  proto::Report::Reply by_gpu, by_user;
  by_gpu.rows = {a_row("GPU-1", 100, 50, 20)};
  by_user.rows = {a_row("alice", 100, 50, 20)};
  const std::string totals = hours_json(by_gpu, by_user, gpus, PageLevel::kTotals);
  EXPECT_THAT(totals, HasSubstr("\"uuid\":\"GPU-0\",\"leases\":0,\"gpu_seconds\":0"));
  EXPECT_THAT(totals,
              HasSubstr("\"gpu_seconds\":100,\"used_gpu_seconds\":50,\"idle_gpu_seconds\":20"));
  EXPECT_THAT(totals, Not(HasSubstr("alice")));
  EXPECT_THAT(hours_json(by_gpu, by_user, gpus, PageLevel::kNames),
              HasSubstr("\"user\":\"alice\""));
}

TEST(TurnsJson, TellWhoHadTheTurnWithNamesOnly) {
  Snapshot snapshot;
  proto::TurnGpu& gpu = snapshot.turns.emplace().gpus.emplace_back();
  gpu.uuid = {"GPU-0"};
  gpu.holder = LeaseId{2};
  proto::TurnLease& lease = gpu.leases.emplace_back();
  lease.lease_id = {2};
  lease.user = "alice";
  lease.pid = 4711;
  gpu.switches.emplace_back().to = {2};
  const std::string totals = turns_json(snapshot, WallTime(1000s), PageLevel::kTotals);
  EXPECT_THAT(totals, HasSubstr("\"leases_in_turns\":1"));
  EXPECT_THAT(totals, Not(HasSubstr("L2")));
  EXPECT_THAT(totals, Not(HasSubstr("alice")));
  const std::string names = turns_json(snapshot, WallTime(1000s), PageLevel::kNames);
  EXPECT_THAT(names, HasSubstr("\"holder\":\"L2\""));
  EXPECT_THAT(names, HasSubstr("\"user\":\"alice\""));
  EXPECT_THAT(names, Not(HasSubstr("4711")));
}

}  // namespace
}  // namespace gpurota::web
