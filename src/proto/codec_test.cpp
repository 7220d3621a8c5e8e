#include "proto/codec.h"

#include "proto/call_samples_test.h"
#include "proto/fields.h"
#include "proto/text_forms.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

Lease a_lease() {
  return {.lease_id = {12},
          .kind = LeaseKind::kRun,
          .share = Share::kSlice,
          .state = LeaseState::kActive,
          .uid = 4294967294u,
          .user = "alice",
          .since = *parse_time("2026-11-21T01:19:32.125Z"),
          .gpus = {{.index = 1,
                    .uuid = {"GPU-1"},
                    .limit_bytes = gib(8),
                    .soft_limit_bytes = std::nullopt,
                    .used_bytes = mib(500),
                    .granted_bytes = gib(1)}},
          .processes = 3,
          .pid = 4711,
          .command = {{"python", "-c", "print('\n')"}},
          .note = "größer"};
}

std::string call(std::string_view method, std::string_view parameters) {
  return R"({"method":")" + std::string(method) + R"(","parameters":)" + std::string(parameters) +
         "}";
}

// The error of a call that must be refused.
WireError refusal(std::string_view text) {
  const auto parsed = parse_call(text);
  EXPECT_FALSE(parsed.has_value()) << text;
  return parsed ? WireError{} : parsed.error().error;
}

void expect_bad_field(std::string_view method, std::string_view parameters,
                      std::string_view field) {
  const WireError error = refusal(call(method, parameters));
  EXPECT_EQ(error.name, kInvalidParameter) << parameters;
  EXPECT_EQ(error.subject, field) << parameters;
}

template <class Method>
void expect_call_survives() {
  const auto first = parse_call(call(Method::kMethod, sample_text<Method>()));
  ASSERT_TRUE(first.has_value()) << Method::kMethod << first.error().error.subject;
  const Method* params = std::get_if<Method>(&first->params);
  ASSERT_NE(params, nullptr) << Method::kMethod;
  const auto again = parse_call(call_json(*params, true));
  ASSERT_TRUE(again.has_value()) << Method::kMethod;
  EXPECT_EQ(again->params, first->params);
  EXPECT_TRUE(again->more);
}

TEST(Call, EveryMethodSurvivesTheRoundTrip) {
#define GPUROTA_TEST_METHOD(M) expect_call_survives<M>();
  GPUROTA_FOR_EACH_METHOD(GPUROTA_TEST_METHOD)
}

TEST(Call, AnAcquireArrivesAsItWasSent) {
  Acquire sent;
  sent.request.gpu_ids = {"0", "GPU-6f1f"};
  sent.request.memory = SizeSpec{gib(8), 0};
  sent.request.soft_limit = SizeSpec{Bytes(), 90};
  sent.request.command = {{"./a b", ""}};
  const auto got = parse_call(call_json(sent));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(std::get<Acquire>(got->params), sent);
  EXPECT_FALSE(got->more);
}

TEST(Call, ParametersMayBeLeftOutWhenNoneIsRequired) {
  EXPECT_TRUE(parse_call(R"({"method":"dev.gpurota.Status"})").has_value());
  EXPECT_TRUE(parse_call(R"({"method":"dev.gpurota.Status","parameters":null})").has_value());
  EXPECT_EQ(refusal(R"({"method":"dev.gpurota.Hold"})").subject, "lease_id");
}

TEST(Call, UnknownFieldsAreIgnored) {
  EXPECT_TRUE(parse_call(R"({"x":1,"method":"dev.gpurota.Hold",
                             "parameters":{"lease_id":"L1","new":[{}]}})")
                  .has_value());
}

TEST(Call, FlagsAreRead) {
  const auto got = parse_call(R"({"method":"dev.gpurota.Doctor","more":true,"oneway":true})");
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(got->more);
  EXPECT_TRUE(got->oneway);
  EXPECT_EQ(refusal(R"({"method":"dev.gpurota.Doctor","more":1})").subject, "more");
  EXPECT_EQ(refusal(R"({"method":"dev.gpurota.Doctor","upgrade":true})").subject, "upgrade");
}

TEST(Call, RefusedOnewayCallIsMarkedOneway) {
  const auto got = parse_call(R"({"method":"dev.gpurota.Nothing","oneway":true})");
  ASSERT_FALSE(got.has_value());
  EXPECT_TRUE(got.error().oneway);
}

TEST(Call, UnknownMethodsAndInterfacesAreTheStandardErrors) {
  EXPECT_EQ(refusal(call("dev.gpurota.Fly", "{}")),
            (WireError{std::string(kMethodNotFound), "", "dev.gpurota.Fly"}));
  EXPECT_EQ(refusal(call("org.varlink.service.Fly", "{}")).name, kMethodNotFound);
  EXPECT_EQ(refusal(call("com.example.Fly", "{}")),
            (WireError{std::string(kInterfaceNotFound), "", "com.example"}));
  EXPECT_EQ(refusal(call("Status", "{}")).name, kInterfaceNotFound);
}

TEST(Call, WrongTypesNameTheField) {
  expect_bad_field(Acquire::kMethod, "[]", "parameters");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpus":"2"}})", "request.gpus");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpus":1.5}})", "request.gpus");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpu_ids":"0"}})", "request.gpu_ids");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpu_ids":["0",1]}})", "request.gpu_ids[1]");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":8}})", "request.memory");
  expect_bad_field(Acquire::kMethod, R"({"request":{"note":null,"command":[null]}})",
                   "request.command[0]");
  expect_bad_field(Release::kMethod, R"({"all":"yes"})", "all");
  expect_bad_field(Start::kMethod, R"({"lease_id":"L1"})", "pid");
  expect_bad_field(Start::kMethod, R"({"lease_id":12,"pid":1})", "lease_id");
  expect_bad_field(Hold::kMethod, R"({"lease_id":"12"})", "lease_id");
}

TEST(Call, IntegersOutOfRangeAreRefused) {
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpus":2147483648}})", "request.gpus");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpus":18446744073709551615}})",
                   "request.gpus");
  expect_bad_field(Acquire::kMethod, R"({"request":{"gpus":1e99}})", "request.gpus");
  expect_bad_field(Start::kMethod, R"({"lease_id":"L1","pid":4294967297})", "pid");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{"bytes":0}}})",
                   "request.memory.bytes");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{"bytes":-1}}})",
                   "request.memory.bytes");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{"bytes":9223372036854775808}}})",
                   "request.memory.bytes");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{"percent":101}}})",
                   "request.memory.percent");
}

TEST(Call, ASizeIsEitherBytesOrPercent) {
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{}}})", "request.memory");
  expect_bad_field(Acquire::kMethod, R"({"request":{"memory":{"bytes":1,"percent":1}}})",
                   "request.memory");
  EXPECT_TRUE(
      parse_call(call(Acquire::kMethod, R"({"request":{"memory":{"bytes":1,"percent":null}}})")));
}

TEST(Call, ForeignTextIsBounded) {
  const auto with_note = [](std::size_t size) {
    return call(Acquire::kMethod, R"({"request":{"note":")" + std::string(size, 'n') + "\"}}");
  };
  EXPECT_TRUE(parse_call(with_note(kMaxNoteBytes)));
  EXPECT_EQ(refusal(with_note(kMaxNoteBytes + 1)).subject, "request.note");
  Acquire acquire;
  acquire.request.command = std::vector<std::string>(kMaxCommandItems + 1, "");
  EXPECT_EQ(refusal(call_json(acquire)).subject, "request.command");
  acquire.request.command = {{std::string(kMaxCommandBytes, 'c')}};
  EXPECT_EQ(refusal(call_json(acquire)).subject, "request.command");
  acquire.request.command.reset();
  acquire.request.gpu_ids = std::vector<std::string>(kMaxGpuIdsItems + 1, "0");
  EXPECT_EQ(refusal(call_json(acquire)).subject, "request.gpu_ids");
}

TEST(Call, MalformedCallIsReported) {
  for (const std::string_view text :
       {"", "x", "[]", "null", "{}", "{\"method\":1}", "{\"method\":\"\xff\"}",
        "{\"method\":\"dev.gpurota.Status\"} trailing"}) {
    EXPECT_EQ(refusal(text).name, kInvalidRequest) << text;
  }
}

TEST(Call, DepthAndSizeAreLimited) {
  const std::string deep = std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']');
  EXPECT_EQ(refusal(call("dev.gpurota.Status", deep)).name, kInvalidRequest);
  EXPECT_EQ(refusal(std::string(60000, '[')).name, kInvalidRequest);
  const std::string brackets(100, '[');  // in a string, brackets are text
  EXPECT_TRUE(parse_call(call("dev.gpurota.Status", R"({"x":"\")" + brackets + "\"}")));
  EXPECT_NE(refusal(std::string(kMaxCallBytes + 1, ' ')).message.find("longer"), std::string::npos);
}

TEST(Call, AnyCommandLineCanBeMadeSendable) {
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>(5000, "argument"),
        std::vector<std::string>{std::string(1 << 20, 'x')},
        std::vector<std::string>(300, std::string(1000, '\x01')),
        std::vector<std::string>(300, std::string(1000, '\xff')),
        std::vector<std::string>(300, "")}) {
    Acquire acquire;
    acquire.request.command = sendable_command(argv);
    EXPECT_TRUE(parse_call(call_json(acquire)));
    EXPECT_EQ(acquire.request.command->back().substr(acquire.request.command->back().size() - 3),
              "…");
  }
  const std::vector<std::string> plain = {"python", "train.py", "--größe", "8"};
  EXPECT_EQ(sendable_command(plain), plain);
}

TEST(Reply, ArrivesAsItWasSent) {
  Acquire::Reply sent{
      .lease = a_lease(), .environment = {{"A", "1"}, {"B", ""}}, .preload = "/l.so"};
  const auto got = parse_reply<Acquire>(reply_json<Acquire>(sent, true));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->reply, sent);
  EXPECT_TRUE(got->continues);
}

TEST(Reply, EveryFieldOfAStatusArrives) {
  Status::Reply sent;
  sent.leases.push_back(a_lease());
  sent.gpus.push_back({.index = 1,
                       .uuid = {"MIG-1"},
                       .name = "NVIDIA H100",
                       .pci = "00000000:01:00.0",
                       .parent = GpuUuid{"GPU-1"},
                       .state = GpuState::kUnreservedUse,
                       .memory_bytes = gib(80),
                       .used_bytes = Bytes(1),
                       .reserved_bytes = gib(8),
                       .leases = {{12}, {13}},
                       .detail = "pid 1"});
  const auto got = parse_reply<Status>(reply_json<Status>(sent));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->reply, sent);
  EXPECT_FALSE(got->continues);
}

TEST(Reply, AnErrorIsKnownByItsWord) {
  EXPECT_EQ(error_word(error_json(no_gpu_error("m", 0, 2))), "NoGpu");
  EXPECT_EQ(error_word(error_json(invalid_parameter("x"))), "InvalidParameter");
  EXPECT_EQ(error_word(reply_json<Status>({})), "");
}

TEST(Reply, EveryFieldOfAnEventAndAFindingArrives) {
  Event event{.event_id = 9,
              .time = *parse_time("2026-11-21T01:19:32.125Z"),
              .type = EventType::kFindingBegun,
              .lease_id = LeaseId{3},
              .gpu = 1,
              .gpu_uuid = GpuUuid{"GPU-1"},
              .uid = 1000,
              .user = "alice",
              .finding = FindingKind::kForeignUse,
              .used_bytes = gib(3),
              .count = 4,
              .message = "m",
              .pids = {{1, 2}},
              .detail = "d"};
  const auto events = parse_reply<Events>(reply_json<Events>({{event}, 7}, true));
  ASSERT_TRUE(events.has_value()) << events.error().message;
  EXPECT_EQ(events->reply.events.at(0), event);
  EXPECT_EQ(events->reply.missed, 7u);
  Status::Reply status;
  status.findings.push_back(
      {.kind = FindingKind::kUnused,
       .gpu = 1,
       .gpu_uuid = {"GPU-1"},
       .lease_id = LeaseId{3},
       .uid = 1000,
       .user = "alice",
       .since = event.time,
       .used_bytes = gib(1),
       .process_count = 1,
       .action = FindingAction::kStop,
       .container = true,
       .perhaps_of = LeaseId{4},
       .processes = {{{.pid = 7, .used_bytes = gib(1), .command = {{"a"}}}}}});
  const auto got = parse_reply<Status>(reply_json<Status>(status));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->reply, status);
}

TEST(Reply, HiddenFieldsAreNullForScripts) {
  ListProcesses::Reply reply;
  reply.processes.emplace_back();
  const std::string text = document_json<ListProcesses>(reply);
  EXPECT_NE(text.find("\"command\": null"), std::string::npos) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(Reply, TextThatIsNotUtf8IsReplaced) {
  Lease lease = a_lease();
  lease.note = "a\xff\xfez";
  const auto got = parse_reply<Update>(reply_json<Update>({lease}));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->reply.lease.note, "a\uFFFD\uFFFDz");
}

// A tenant's page may contain anything: one wrong number must not invalidate the whole answer.
TEST(Reply, TooLargeNumberIsWrittenAsTheMaximum) {
  ListProcesses::Reply sent;
  Process& process = sent.processes.emplace_back();
  process.allocations = UINT64_MAX;
  process.used_bytes = Bytes(UINT64_MAX);
  const std::string text = reply_json<ListProcesses>(sent);
  EXPECT_EQ(text.find("18446744073709551615"), std::string::npos) << text;
  const auto got = parse_reply<ListProcesses>(text);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->reply.processes[0].allocations, std::uint64_t{INT64_MAX});
  EXPECT_EQ(got->reply.processes[0].used_bytes, Bytes(INT64_MAX));
  EXPECT_EQ(document_json<ListProcesses>(sent).find("18446744073709551615"), std::string::npos);
}

TEST(Reply, NumberOutOfRangeIsReadAsTheNearest) {
  const std::string good = reply_json<Update>({a_lease()});
  const std::string field = "\"processes\":";
  for (const auto& [number, wanted] :
       std::vector<std::pair<std::string, int>>{{"18446744073709551615", INT32_MAX},
                                                {"99999999999999999999999", INT32_MAX},
                                                {"1e300", INT32_MAX},
                                                {"-1e300", INT32_MIN},
                                                {"-9223372036854775808", INT32_MIN},
                                                {"2.5", 2}}) {
    std::string text = good;
    const std::size_t at = text.rfind(field) + field.size();
    text.replace(at, text.find_first_of(",}", at) - at, number);
    const auto got = parse_reply<Update>(text);
    ASSERT_TRUE(got.has_value()) << number << ": " << got.error().message;
    EXPECT_EQ(got->reply.lease.processes, wanted) << number;
  }
}

TEST(Reply, UnreadableOptionalFieldIsLeftOut) {
  ListProcesses::Reply sent;
  sent.processes.emplace_back().allocations = 7;
  std::string text = reply_json<ListProcesses>(sent);
  text.replace(text.find("\"allocations\":7"), 15, "\"allocations\":\"many\"");
  const auto got = parse_reply<ListProcesses>(text);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_FALSE(got->reply.processes[0].allocations);
}

TEST(Reply, JsonOutputIsEscapedForTerminalsAndKeepsItsValue) {
  Lease lease = a_lease();
  lease.note = "a\u009b2J\u202e\u2066\x7f\u200f\U000E0041z\n";
  Event event;
  event.message = *lease.note;
  const std::string document = document_json<Update>({lease});
  for (const std::string& text : {document, event_json(event)}) {
    for (const std::string_view bad :
         {"\u009b", "\u202e", "\u2066", "\x7f", "\u200f", "\U000E0041"}) {
      EXPECT_EQ(text.find(bad), std::string::npos) << text;
    }
    EXPECT_NE(text.find("\\u009B2J\\u202E"), std::string::npos) << text;
  }
  const auto got = parse_reply<Update>("{\"parameters\":" + document + "}");
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(got->reply.lease.note, lease.note);
}

TEST(Reply, WordsOfANewerDaemonAreUnknownNotErrors) {
  Hold::Reply sent{.lease = a_lease(), .ended = Ended::kLost, .reason = "r"};
  std::string text = reply_json<Hold>(sent);
  text.replace(text.find("\"lost\""), 6, "\"melted\"");
  const auto got = parse_reply<Hold>(text);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->reply.ended, Ended::kUnknown);
}

TEST(Reply, MalformedReplyNamesThePlace) {
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"x", "JSON"},
           {"{}", "'gpus'"},
           {R"({"parameters":{"gpus":[{"index":0}],"leases":[]}})", "'gpus[0].uuid'"},
           {R"({"parameters":[]})", "parameters"},
           {R"({"continues":3,"parameters":{}})", "continues"},
           {R"({"error":3})", "error"}}) {
    const auto got = parse_reply<Status>(text);
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_EQ(got.error().name, kMalformed);
    EXPECT_NE(got.error().message.find(word), std::string::npos) << got.error().message;
  }
}

}  // namespace
}  // namespace gpurota::proto
