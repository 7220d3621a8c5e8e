#include "web/page_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow{1000s};

// A snapshot with private content in every field of the protocol that can have it.
Snapshot a_snapshot() {
  Snapshot snapshot;
  snapshot.info.version = "0.1";
  proto::Gpu& gpu = snapshot.status.gpus.emplace_back();
  gpu.uuid = {"GPU-0"};
  gpu.name = "H100 <script>";
  gpu.detail = "secret: used by pid 17 of alice";
  gpu.memory_bytes = gib(80);
  gpu.used_bytes = gib(7);
  gpu.leases = {{1}};
  proto::Lease& lease = snapshot.status.leases.emplace_back();
  lease.lease_id = {1};
  lease.share = proto::Share::kSwap;
  lease.user = "alice";
  lease.uid = 4711;
  lease.as_name = "<img src=x onerror=alert(1)>";
  lease.note = "secret <script>";
  lease.command = {{"secret-command"}};
  lease.name = "secret-name";
  lease.model = "secret-model";
  lease.pid = 4712;
  proto::LeaseGpu& share = lease.gpus.emplace_back();
  share.uuid = {"GPU-0"};
  share.used_bytes = gib(3);
  proto::Request& request = snapshot.queue.requests.emplace_back();
  request.request_id = {7};
  request.user = "bob";
  request.gpus = 2;
  request.note = "secret";
  request.command = {{"secret"}};
  request.name = "secret";
  request.pid = 4713;
  request.wait_reason = {.code = proto::ReasonCode::kLeasedUntil,
                         .text = "waits for GPU 0: alice's program (L1) ends at {time}",
                         .time = kNow};
  request.uid = 4714;
  snapshot.status.bookings.emplace().emplace_back().note = "secret";
  snapshot.status.bookings->back().user = "carol";
  proto::TurnGpu& turns = snapshot.turns.emplace().gpus.emplace_back();
  turns.uuid = {"GPU-0"};
  turns.takes_turns = true;
  turns.holder = LeaseId{1};
  return snapshot;
}

TEST(PageJson, TotalsNameNobody) {
  const std::string text = now_json(a_snapshot(), kNow, PageLevel::kTotals);
  for (const char* name : {"alice", "bob", "carol", "secret", "L1", "R7", "471", "onerror"}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
  EXPECT_THAT(text, HasSubstr("\"level\":\"totals\""));
  EXPECT_THAT(text, HasSubstr("\"swap_bytes\":3221225472"));
  EXPECT_THAT(text, HasSubstr("\"takes_turns\":true"));
  EXPECT_THAT(text, HasSubstr("\"waiting\":1,\"gpus\":2"));
  EXPECT_THAT(text, HasSubstr("\"leases_by_share\":{\"swap\":1}"));
}

TEST(PageJson, NamesShowUsersButNeverTheirCommands) {
  const std::string text = now_json(a_snapshot(), kNow, PageLevel::kNames);
  for (const char* name : {"secret", "471"}) EXPECT_THAT(text, Not(HasSubstr(name)));
  EXPECT_THAT(text, HasSubstr("\"lease_id\":\"L1\""));
  EXPECT_THAT(text, HasSubstr("\"user\":\"alice\""));
  EXPECT_THAT(text, HasSubstr("\"request_id\":\"R7\""));
  EXPECT_THAT(text, HasSubstr("\"turn_holder\":\"L1\""));
  EXPECT_THAT(text, HasSubstr("\"user\":\"carol\""));
  EXPECT_THAT(text,
              HasSubstr("\"wait_reason\":{\"code\":\"leased_until\",\"text\":\"waits for GPU 0: "
                        "alice's program (L1) ends at {time}\",\"time\":\"1970-01-01T00:16:40"));
}

TEST(PageJson, UserTextIsNoMarkup) {
  const std::string text = now_json(a_snapshot(), kNow, PageLevel::kNames);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_THAT(text, HasSubstr("H100 \\u003cscript\\u003e"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(PageJson, SilentDaemonIsReported) {
  EXPECT_EQ(now_json(std::nullopt, kNow, PageLevel::kTotals, "link"),
            "{\"time\":\"1970-01-01T00:16:40.000Z\",\"level\":\"totals\",\"sign_in\":\"link\","
            "\"machines\":1,"
            "\"daemon\":{\"up\":false}}");
}

proto::Event an_event(std::uint64_t id, proto::EventType type) {
  proto::Event event;
  event.event_id = id;
  event.type = type;
  event.message = "message " + std::to_string(id);
  event.detail = "secret";
  event.pids = {{4711}};
  return event;
}

TEST(PageJson, EventsOfOthersAreNotInTotals) {
  proto::Events::Reply reply;
  reply.events = {an_event(1, proto::EventType::kGpuError),
                  an_event(2, proto::EventType::kLeaseMade),
                  an_event(3, proto::EventType::kCallDenied)};
  reply.events[1].lease_id = LeaseId{1};
  reply.events[2].uid = 4711;
  const std::string totals = events_json(reply, PageLevel::kTotals);
  EXPECT_THAT(totals, HasSubstr("\"type\":\"gpu_error\""));
  EXPECT_THAT(totals, Not(HasSubstr("lease_made")));
  EXPECT_THAT(totals, Not(HasSubstr("call_denied")));
  EXPECT_THAT(totals, Not(HasSubstr("message")));
  const std::string names = events_json(reply, PageLevel::kNames);
  EXPECT_LT(names.find("message 3"), names.find("message 1"));
  EXPECT_THAT(names, Not(HasSubstr("secret")));
  EXPECT_THAT(names, Not(HasSubstr("4711")));
}

TEST(PageJson, LevelsHaveWords) {
  for (const PageLevel level : {PageLevel::kNone, PageLevel::kTotals, PageLevel::kNames}) {
    EXPECT_EQ(parse_page_level(to_string(level)), level);
  }
  EXPECT_FALSE(parse_page_level("all"));
}

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
