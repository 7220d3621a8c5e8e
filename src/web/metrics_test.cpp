#include "web/metrics.h"

#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow{1000s};

Snapshot a_snapshot() {
  Snapshot snapshot;
  snapshot.info.version = "0.1";
  snapshot.info.driver_version = "580";
  proto::Gpu& gpu = snapshot.status.gpus.emplace_back();
  gpu.uuid = {"GPU-0"};
  gpu.name = "H100";
  gpu.state = proto::GpuState::kInUse;
  gpu.memory_bytes = gib(80);
  gpu.used_bytes = gib(2);
  gpu.leases = {{1}};
  proto::Lease& lease = snapshot.status.leases.emplace_back();
  lease.lease_id = {1};
  lease.user = "alice";
  lease.note = "secret note";
  lease.command = {{"secret-command"}};
  return snapshot;
}

TEST(Metrics, HaveSeriesForEachGpu) {
  const std::string text = metrics_text(a_snapshot(), kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_memory_used_bytes{gpu=\"0\"} 2147483648\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_leases{gpu=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_state{gpu=\"0\",state=\"in_use\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_state{gpu=\"0\",state=\"error\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_state{gpu=\"0\",state=\"held\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_state{gpu=\"0\",state=\"split\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_up 1\n"));
}

TEST(Metrics, SayWhoEnforcesTheLimitsOfAGpu) {
  Snapshot snapshot = a_snapshot();
  snapshot.status.leases[0].gpus.emplace_back().uuid = {"GPU-0"};
  EXPECT_THAT(metrics_text(snapshot, kNow),
              HasSubstr("\ngpurota_gpu_limits{gpu=\"0\",by=\"library\"} 0\n"));
  snapshot.status.leases[0].enforced_by = proto::Enforcer::kLibrary;
  snapshot.status.leases.push_back(snapshot.status.leases[0]);
  snapshot.status.leases.push_back(snapshot.status.leases[0]);
  snapshot.status.leases[2].enforced_by = proto::Enforcer::kLibraryAndDriver;
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_limits{gpu=\"0\",by=\"library\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_limits{gpu=\"0\",by=\"library_and_driver\"} 1\n"));
}

TEST(Metrics, HoldNothingPrivate) {
  const std::string text = metrics_text(a_snapshot(), kNow);
  EXPECT_THAT(text, Not(HasSubstr("alice")));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(Metrics, NameUsersAndLeasesOnlyWhereTheSiteWantsIt) {
  Snapshot snapshot = a_snapshot();
  proto::LeaseGpu& share = snapshot.status.leases[0].gpus.emplace_back();
  snapshot.status.leases[0].kind = proto::LeaseKind::kRun;
  share.used_bytes = gib(2);
  share.limit_bytes = gib(8);
  snapshot.status.leases.push_back(snapshot.status.leases[0]);
  snapshot.status.leases[1].lease_id = {2};
  snapshot.status.leases[1].gpus[0].limit_bytes.reset();
  const std::string users = metrics_text(snapshot, kNow, {.per_user = true});
  EXPECT_THAT(users, HasSubstr("\ngpurota_user_leases{user=\"alice\"} 2\n"));
  EXPECT_THAT(users, HasSubstr("\ngpurota_user_memory_used_bytes{user=\"alice\"} 4294967296\n"));
  EXPECT_THAT(users, Not(HasSubstr("L1")));
  const std::string leases = metrics_text(snapshot, kNow, {.per_lease = true});
  const std::string first = "{lease=\"L1\",user=\"alice\",kind=\"run\",gpu=\"0\"} ";
  EXPECT_THAT(leases, HasSubstr("\ngpurota_lease_memory_used_bytes" + first + "2147483648\n"));
  EXPECT_THAT(leases, HasSubstr("\ngpurota_lease_memory_limit_bytes" + first + "8589934592\n"));
  EXPECT_THAT(leases, Not(HasSubstr("\ngpurota_lease_held_back_seconds{")));
  snapshot.status.leases[0].held_seconds = 12;
  EXPECT_THAT(
      metrics_text(snapshot, kNow, {.per_lease = true}),
      HasSubstr(
          "\ngpurota_lease_held_back_seconds{lease=\"L1\",user=\"alice\",kind=\"run\"} 12\n"));
  EXPECT_THAT(leases, Not(HasSubstr("_ratio{lease=\"L1\"")));
  EXPECT_THAT(leases, Not(HasSubstr("limit_bytes{lease=\"L2\"")));
  EXPECT_THAT(leases, Not(HasSubstr("secret")));
}

TEST(Metrics, SayHowMuchOfAGpusTimeALeaseGot) {
  Snapshot snapshot = a_snapshot();
  proto::Lease& lease = snapshot.status.leases[0];
  lease.kind = proto::LeaseKind::kRun;
  lease.compute_percent = 30;
  lease.last_minute.emplace();
  lease.last_minute->seconds = 60;
  lease.last_minute->held_percent = 69;
  lease.last_minute->got_percent = 31;
  const std::string text = metrics_text(snapshot, kNow, {.per_lease = true});
  const std::string labels = "{lease=\"L1\",user=\"alice\",kind=\"run\"} ";
  EXPECT_THAT(text, HasSubstr("\ngpurota_lease_held_back_ratio" + labels + "0.69\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_lease_compute_promised_ratio" + labels + "0.3\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_lease_compute_ratio" + labels + "0.31\n"));
}

TEST(Metrics, AHostileNameStaysInItsLabel) {
  Snapshot snapshot = a_snapshot();
  snapshot.status.gpus[0].name = "a\"} 1\ngpurota_up 0\n\\\x1b[31m\xff";
  snapshot.status.gpus[0].uuid = {"\"\\\n"};
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, Not(HasSubstr("\ngpurota_up 0")));
  EXPECT_THAT(text, HasSubstr("name=\"a\\\"} 1"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(valid_utf8(text), text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    EXPECT_TRUE(line.starts_with("# ") || line.starts_with("gpurota_")) << line;
    at = end + 1;
  }
}

TEST(Metrics, TheSeriesOfAMachineDoNotGrowWithItsUsers) {
  Snapshot snapshot = a_snapshot();
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines(metrics_text(snapshot, kNow));
  for (std::uint64_t i = 2; i < 1000; ++i) {
    snapshot.status.leases.push_back(snapshot.status.leases[0]);
    snapshot.status.leases.back().lease_id = {i};
    snapshot.status.leases.back().user = "user" + std::to_string(i);
    snapshot.queue.requests.emplace_back().request_id = {i};
    snapshot.status.findings.emplace_back().kind = proto::FindingKind::kUnused;
    snapshot.health.events.push_back({proto::EventType::kLeaseMade, 1});
  }
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_EQ(lines(text), before);
  EXPECT_THAT(text, HasSubstr("gpurota_events_total{type=\"lease_made\"} 998\n"));
}

TEST(Metrics, HaveLengthAndAgeOfTheQueue) {
  Snapshot snapshot = a_snapshot();
  for (const int waited : {30, 10}) {
    proto::Request& request = snapshot.queue.requests.emplace_back();
    request.since = kNow - std::chrono::seconds(waited);
    request.gpus = 2;
  }
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_queue_requests 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_queue_gpus 4\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_queue_oldest_wait_seconds 30\n"));
}

TEST(Metrics, WaitsAreACumulativeHistogram) {
  Snapshot snapshot = a_snapshot();
  snapshot.health.waits = {{1, 60}, {3, 4, 5}, 700};
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("gpurota_queue_waited_seconds_bucket{le=\"1\"} 3\n"
                              "gpurota_queue_waited_seconds_bucket{le=\"60\"} 7\n"
                              "gpurota_queue_waited_seconds_bucket{le=\"+Inf\"} 12\n"
                              "gpurota_queue_waited_seconds_sum 700\n"
                              "gpurota_queue_waited_seconds_count 12\n"));
}

TEST(Metrics, MovedMemoryIsCountedByGpu) {
  Snapshot snapshot = a_snapshot();
  EXPECT_THAT(metrics_text(snapshot, kNow), Not(HasSubstr("evict"))) << "no turns are known";
  proto::TurnGpu& gpu = snapshot.turns.emplace().gpus.emplace_back();
  gpu.uuid = {"GPU-0"};
  gpu.takes_turns = true;
  gpu.evictions = 3;
  gpu.handovers = 2;
  gpu.evicted_bytes = gib(2);
  gpu.restored_bytes = gib(1);
  for (std::uint64_t id = 1; id < 100; ++id) {
    gpu.leases.emplace_back().user = "alice";
    gpu.switches.emplace_back().to = {id};
  }
  snapshot.turns->gpus.emplace_back().uuid = {"GPU-of-nobody"};
  snapshot.turns->host_out_bytes = gib(1);
  snapshot.turns->host_budget_bytes = gib(64);
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("\n# TYPE gpurota_gpu_evictions_total counter\n"
                              "gpurota_gpu_evictions_total{gpu=\"0\"} 3\n#"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_evicted_bytes_total{gpu=\"0\"} 2147483648\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_restored_bytes_total{gpu=\"0\"} 1073741824\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_turn_handovers_total{gpu=\"0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_takes_turns{gpu=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_evicted_host_bytes 1073741824\n"));
  EXPECT_THAT(text, Not(HasSubstr("alice")));
}

TEST(Metrics, UtilisationIsThereWhereTheDriverTellsIt) {
  Snapshot snapshot = a_snapshot();
  EXPECT_THAT(metrics_text(snapshot, kNow), Not(HasSubstr("gpurota_gpu_utilisation_ratio{")));
  snapshot.status.gpus[0].utilisation_percent = 37;
  snapshot.health.recovered_bytes = gib(3);
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_gpu_utilisation_ratio{gpu=\"0\"} 0.37\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_recovered_bytes_total 3221225472\n"));
}

TEST(Metrics, UnmeasurableValueHasNoSeries) {
  Snapshot snapshot = a_snapshot();
  snapshot.status.gpus[0].used_bytes.reset();
  EXPECT_THAT(metrics_text(snapshot, kNow),
              Not(HasSubstr("\ngpurota_gpu_memory_used_bytes{gpu=\"0\"}")));
}

TEST(Metrics, TwoInstancesOfAMigGpuAreTwoSeries) {
  Snapshot snapshot = a_snapshot();
  for (const char* uuid : {"MIG-a", "MIG-b"}) {
    proto::Gpu& gpu = snapshot.status.gpus.emplace_back();
    gpu.uuid = {uuid};
    gpu.parent = GpuUuid{"GPU-0"};
  }
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("gpurota_gpu_leases{gpu=\"0\",mig_uuid=\"MIG-a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("gpurota_gpu_leases{gpu=\"0\",mig_uuid=\"MIG-b\"} 0\n"));
}

TEST(Metrics, LoopTimeIsInSecondsIfTheDaemonReportsIt) {
  Snapshot snapshot = a_snapshot();
  EXPECT_THAT(metrics_text(snapshot, kNow), Not(HasSubstr("gpurota_loop")));
  snapshot.health.loop_longest_us = 1250000;
  snapshot.health.loop_longest_minute_us = 500;
  const std::string text = metrics_text(snapshot, kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_loop_longest_seconds{window=\"start\"} 1.25\n"
                              "gpurota_loop_longest_seconds{window=\"minute\"} 0.0005\n"));
}

proto::Lease a_pod(const std::string& pod, std::uint64_t id) {
  proto::Lease lease;
  lease.lease_id = {id};
  lease.user = "root";
  lease.kind = proto::LeaseKind::kPod;
  lease.pod = proto::Pod{"team-a", pod, "main"};
  proto::LeaseGpu& share = lease.gpus.emplace_back();
  share.limit_bytes = gib(4);
  share.used_bytes = gib(1);
  share.moved_out_bytes = gib(2);
  return lease;
}

TEST(Metrics, ContainersHaveSeriesThatJoinWithThoseOfTheCluster) {
  Snapshot snapshot = a_snapshot();
  const std::string longest(253, 'p');
  snapshot.status.leases = {a_pod("train-0", 1), a_pod("train-0", 2), a_pod(longest, 3)};
  EXPECT_THAT(metrics_text(snapshot, kNow), Not(HasSubstr("train-0")));
  const std::string text = metrics_text(snapshot, kNow, {.per_pod = true});
  const std::string labels = "{namespace=\"team-a\",pod=\"train-0\",container=\"main\",gpu=\"0\"} ";
  EXPECT_THAT(text, HasSubstr("\ngpurota_pod_memory_used_bytes" + labels + "2147483648\n"))
      << "two leases of one container are one series";
  EXPECT_THAT(text, HasSubstr("\ngpurota_pod_memory_evicted_bytes" + labels + "4294967296\n"));
  EXPECT_THAT(text, HasSubstr("\ngpurota_pod_memory_limit_bytes" + labels + "8589934592\n"));
  EXPECT_THAT(text, HasSubstr("pod=\"" + longest + "\"")) << "one that is cut cannot be joined";
}

TEST(Metrics, NumberOfPodSeriesIsLimited) {
  Snapshot snapshot = a_snapshot();
  snapshot.status.leases.clear();
  for (std::uint64_t i = 1; i <= kMostPodSeries + 7; ++i) {
    snapshot.status.leases.push_back(a_pod("p" + std::to_string(i), i));
  }
  const std::string text = metrics_text(snapshot, kNow, {.per_pod = true});
  EXPECT_THAT(text, HasSubstr("\ngpurota_pods_left_out 7\n"));
  EXPECT_THAT(text, HasSubstr("pod=\"p1000\""));
  EXPECT_THAT(text, Not(HasSubstr("pod=\"p1001\"")));
}

TEST(Metrics, MetricsWithoutADaemonShowOnlyThat) {
  const std::string text = metrics_text(std::nullopt, kNow);
  EXPECT_THAT(text, HasSubstr("\ngpurota_up 0\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Ready, NeedsDaemonDriverStoreAndAGpuThatWorks) {
  EXPECT_EQ(not_ready_because(a_snapshot()), "");
  EXPECT_THAT(not_ready_because(std::nullopt), HasSubstr("daemon"));
  Snapshot snapshot = a_snapshot();
  snapshot.health.driver_error = "no NVIDIA driver\x1b";
  EXPECT_THAT(not_ready_because(snapshot), HasSubstr("driver: no NVIDIA driver"));
  EXPECT_THAT(not_ready_because(snapshot), Not(HasSubstr("\x1b")));
  snapshot = a_snapshot();
  snapshot.health.store_error = "disk full";
  EXPECT_THAT(not_ready_because(snapshot), HasSubstr("store: disk full"));
  snapshot = a_snapshot();
  snapshot.status.gpus[0].state = proto::GpuState::kError;
  EXPECT_THAT(not_ready_because(snapshot), HasSubstr("every GPU"));
}

}  // namespace
}  // namespace gpurota::web
