// Tests of several machines' answers in one table and in one document, including answers that no
// gpurota would give.
#include "cli/hosts/answers.h"

#include "cli/history/history_views.h"
#include "cli/queue/queue_text.h"
#include "cli/status/status_samples_test.h"
#include "cli/status/status_view.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using samples::kNow;
using samples::Machine;

HostAnswer answered(const std::string& host, const std::string& text) { return {host, text}; }
HostAnswer failed_answer(const std::string& host, const std::string& why) {
  return {host, tl::unexpected(Error{Code::kIo, 0, why})};
}

std::string printed(const proto::Status::Reply& reply) {
  return proto::document_json<proto::Status>(reply);
}

proto::Status::Reply small_machine() {
  Machine machine(2);
  machine.lend(1, "alice", {0}, std::chrono::minutes(5), 3, 8);
  return machine.reply;
}

proto::Status::Reply other_machine() {
  Machine machine(1, "NVIDIA A100-SXM4-40GB", 40);
  machine.lend(12, "bob", {0}, std::chrono::minutes(61), 30);
  machine.reply.waiting = 2;
  return machine.reply;
}

TEST(HostAnswers, StatusSurvivesTheRoundTrip) {
  const auto reply = parse_printed<proto::Status>(printed(other_machine()));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(printed(*reply), printed(other_machine()));
}

TEST(HostAnswers, MachinesAreOneTableInTheirOrder) {
  const proto::Status::Reply first = other_machine(), second = small_machine();
  const std::vector<OfHost<proto::Status>> hosts = {{"gpu2", &first}, {"gpu1", &second}};
  EXPECT_EQ(hosts_status_text(hosts, {0, false}, kNow),
            "HOST  GPU STATE   USER   LEASE  MEMORY GiB       FOR  LOAD  MODEL\n"
            "gpu2    0 in use  bob    L12        30 / 40    1h01m   97%  A100-SXM4-40GB\n"
            "gpu1    0 in use  alice  L1          3 / 8        5m   97%  H100 80GB HBM3\n"
            "gpu1    1 free                       0 / 79.6           0%  H100 80GB HBM3\n"
            "2 wait: gpurota queue --host …\n");
  EXPECT_EQ(hosts_summary_text(hosts, {0, false}),
            "HOST  GPUS  FREE  IN USE  WAITING  MODELS\n"
            "gpu2     1     0       1        2  1 x A100-SXM4-40GB\n"
            "gpu1     2     1       1        0  2 x H100 80GB HBM3\n");
  EXPECT_EQ(hosts_status_text(hosts, {50, false}, kNow),
            "HOST  GPU STATE   USER   LEASE  MEMORY GiB\n"
            "gpu2    0 in use  bob    L12        30 / 40\n"
            "gpu1    0 in use  alice  L1          3 / 8\n"
            "gpu1    1 free                       0 / 79.6\n"
            "2 wait: gpurota queue --host …\n");
}

TEST(HostAnswers, QueuesAreOneTableInTheirOrder) {
  proto::ListRequests::Reply first, second;
  proto::Request& request = first.requests.emplace_back();
  request.request_id = RequestId{7};
  request.position = 1;
  request.user = "alice";
  request.gpus = 2;
  request.since = kNow;
  request.reason = "as an older daemon says it";
  request.wait_reason = {.text = "waits for GPU 1: bob's program (L3) ends at {time}",
                         .time = kNow};
  second.requests = first.requests;
  second.requests[0].user = "bob";
  second.requests[0].wait_reason.reset();
  const std::vector<OfHost<proto::ListRequests>> hosts = {{"gpu2", &first}, {"gpu1", &second}};
  const std::string text = hosts_queue_text(hosts, {0, false}, kNow);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "HOST     REQUEST  USER   GPUS  FREE  SINCE  EXPECTED  WHY");
  EXPECT_NE(text.find("gpu2  1  R7       alice  2"), std::string::npos) << text;
  EXPECT_NE(text.find("gpu1  1  R7       bob    2"), std::string::npos) << text;
  EXPECT_NE(text.find("bob's program (L3) ends at "), std::string::npos) << text;
  EXPECT_EQ(text.find("{time}"), std::string::npos) << text;
  EXPECT_NE(text.find("as an older daemon says it"), std::string::npos) << text;
  first.requests.clear();
  second.requests.clear();
  EXPECT_EQ(hosts_queue_text(hosts, {0, false}, kNow), "the queues are empty\n");
}

TEST(HostAnswers, ReportsAreOneTableWithOneTotal) {
  proto::Report::Reply first;
  first.by = "user";
  first.rows.push_back({.key = "alice",
                        .leases = 2,
                        .gpu_seconds = 7200,
                        .mib_seconds = 0,
                        .used_gpu_seconds = 3600,
                        .idle_gpu_seconds = 0});
  proto::Report::Reply second = first;
  second.rows[0].key = "bob";
  const std::vector<OfHost<proto::Report>> hosts = {{"gpu2", &first}, {"gpu1", &second}};
  const std::string text = hosts_report_text(hosts, {0, false});
  EXPECT_NE(text.find("HOST  USER   LEASES  GPU HOURS  SHARE"), std::string::npos) << text;
  EXPECT_NE(text.find("gpu2  alice       2       2.00   50 %"), std::string::npos) << text;
  EXPECT_NE(text.find("      total       4       4.00  100 %"), std::string::npos) << text;
  const std::string csv = hosts_report_csv(hosts);
  EXPECT_EQ(
      csv.substr(0, csv.find("\r\n") + 2),
      "\"host\",\"user\",\"leases\",\"gpu_hours\",\"gib_hours\",\"used_gpu_hours\",\"idle_gpu_"
      "hours\"\r\n");
  EXPECT_NE(csv.find("\"gpu1\",\"bob\",2,2.0000,"), std::string::npos) << csv;
}

TEST(HostAnswers, OneDocumentHasEachMachine) {
  const std::string json =
      answers_json("status", {answered("gpu1", "{\"gpus\": [], \"of_a_newer_one\": {\"x\": 1}}"),
                              failed_answer("gpu2", "no answer within 5 s")});
  EXPECT_EQ(json,
            "{\n"
            "  \"hosts\": [\n"
            "    {\n"
            "      \"host\": \"gpu1\",\n"
            "      \"status\": {\n"
            "        \"gpus\": [],\n"
            "        \"of_a_newer_one\": {\n"
            "          \"x\": 1\n"
            "        }\n"
            "      }\n"
            "    },\n"
            "    {\n"
            "      \"host\": \"gpu2\",\n"
            "      \"error\": \"no answer within 5 s\"\n"
            "    }\n"
            "  ]\n"
            "}\n");
}

TEST(HostAnswers, AnswerThatIsNotGpurotasIsReported) {
  const std::string deep = "{\"gpus\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  for (const std::string& text :
       {std::string(), std::string("Welcome to gpu1!\n") + printed(small_machine()),
        std::string("{\"gpus\": 7, \"leases\": [], \"findings\": []}"), std::string("[]"),
        std::string("{\"gpus\": [], \"leases\": [], \"findings\": []"), std::string("null"),
        std::string("{}, \"error\": \"x\""), std::string("\xff\xfe"), deep,
        std::string("{\"gpus\": [\"\xff\"], \"leases\": [], \"findings\": []}")}) {
    std::vector<HostAnswer> answers = {answered("a", text),
                                       answered("b", printed(small_machine()))};
    EXPECT_EQ(parse_all<proto::Status>(answers).size(), 1U) << text.substr(0, 80);
    ASSERT_FALSE(answers[0].text);
    EXPECT_EQ(trouble_line(answers[0]),
              "a: what it prints is not the JSON of gpurota: does its shell print something of its "
              "own, or is its gpurota older?");
    EXPECT_NE(answers_json("status", answers).find("\"error\": \"what it prints"),
              std::string::npos);
  }
}

TEST(HostAnswers, NothingOfAHostileMachineReachesTheTerminal) {
  proto::Status::Reply evil = small_machine();
  evil.gpus[0].name = "\x1b[2J\x07NVIDIA";
  evil.leases[0].user = "\x1b]0;gone\x07root\n\u202e";
  evil.leases[0].note = std::string(100000, 'x') + "\x1b[31m";
  const auto back = parse_printed<proto::Status>(printed(evil));
  ASSERT_TRUE(back) << back.error().message;
  const std::vector<OfHost<proto::Status>> hosts = {{"gpu1", &*back}, {"gpu2", &*back}};
  for (const std::string& text :
       {hosts_status_text(hosts, {100, false}, kNow), hosts_summary_text(hosts, {100, false}),
        answers_json("status", {answered("gpu1", printed(evil))}),
        answers_json("status", {answered("gpu1", "{\"x\": \"\xc2\x9b\\u001b\x7f\u202e\"}")}),
        trouble_line(failed_answer("gpu1", "\x1b[2J no\n\u202e way")),
        answers_json("status", {failed_answer("gpu1", "\x1b[2J\n\u202e \"}")})}) {
    for (const char* const bad : {"\x1b", "\x07", "\x7f", "\u202e", "\xc2\x9b"}) {
      EXPECT_EQ(text.find(bad), std::string::npos) << text.substr(0, 400);
    }
  }
  EXPECT_EQ(trouble_line(failed_answer("a", std::string(5000, 'y'))).size(), 3 + 299 + 3);
}

}  // namespace
}  // namespace gpurota::cli
