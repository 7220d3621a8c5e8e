#include "base/text.h"
#include "cli/args/since.h"
#include "cli/history/history_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

proto::Report::Reply a_report() {
  proto::Report::Reply reply;
  reply.until = WallTime(1000h);
  reply.by = "user";
  reply.rows = {{"alice", 3, 7200, std::uint64_t{1024} * 3600}, {"bob", 1, 3600, 0}};
  return reply;
}

TEST(ReportText, HasHoursSharesATotalAndBarsOnATerminal) {
  const std::string text = report_text(a_report(), {100, false});
  EXPECT_THAT(text, HasSubstr("alice"));
  EXPECT_THAT(text, HasSubstr("2.00"));
  EXPECT_THAT(text, HasSubstr("67 %"));
  EXPECT_THAT(text, HasSubstr("3.00"));
  EXPECT_THAT(text, HasSubstr("████"));
  EXPECT_THAT(report_text(a_report(), {}), Not(HasSubstr("█")));
}

TEST(ReportText, CallsAGpuByItsIndexAndName) {
  proto::Report::Reply reply = a_report();
  reply.by = "gpu";
  reply.rows[0].key = "GPU-a";
  reply.rows[1].key = "GPU-gone";
  proto::Gpu gpu;
  gpu.index = 3;
  gpu.uuid = {"GPU-a"};
  gpu.name = "NVIDIA H200";
  name_gpus(reply, {gpu});
  EXPECT_THAT(report_text(reply, {}), HasSubstr("3 NVIDIA H200"));
  EXPECT_THAT(report_text(reply, {}), HasSubstr("GPU-gone"));
}

// canhazgpu's mistake: an empty report divided by zero.
// An older gpurotad does not measure how long programs computed.
TEST(ReportText, UncountedValueIsNotZero) {
  proto::Report::Reply reply = a_report();
  const std::string text = report_text(reply, {});
  EXPECT_THAT(text.substr(text.find("total")), ContainsRegex("100 % +- +- "));
  EXPECT_THAT(report_csv(reply), HasSubstr("\"alice\",3,2.0000,1.0000,,\r\n"));
  reply.rows[0].used_gpu_seconds = 1800;
  EXPECT_THAT(report_text(reply, {}), ContainsRegex("total .*100 % +0.50 +- "));
  EXPECT_THAT(report_csv(reply), HasSubstr("\"alice\",3,2.0000,1.0000,0.5000,\r\n"));
}

TEST(ReportText, EmptyReportIsStillText) {
  EXPECT_THAT(report_text({}, {}), HasSubstr("no GPU was used"));
  proto::Report::Reply none = a_report();
  for (proto::ReportRow& row : none.rows) row.gpu_seconds = row.mib_seconds = 0;
  EXPECT_THAT(report_text(none, {80, false}), HasSubstr("0 %"));
  EXPECT_THAT(report_text(none, {80, false}), Not(HasSubstr("nan")));
}

TEST(ReportText, NotesOfOtherUsersAreOneRow) {
  proto::Report::Reply reply = a_report();
  reply.rows.push_back({std::nullopt, 1, 60, 0});
  reply.rows.push_back({"", 1, 60, 0});
  EXPECT_THAT(report_text(reply, {}), HasSubstr("(others)"));
  EXPECT_THAT(report_text(reply, {}), HasSubstr("(none)"));
}

TEST(ReportCsv, IsQuotedAndNeverAFormulaOrAnEscape) {
  proto::Report::Reply reply = a_report();
  reply.by = "note";
  reply.rows = {{"=cmd|'/c calc'!A1", 1, 3600, 0}, {"a \"b\",\n\x1b[31mc", 1, 3600, 0}};
  const std::string csv = report_csv(reply);
  EXPECT_THAT(csv, HasSubstr("\"'=cmd"));
  EXPECT_THAT(csv, HasSubstr("\"a \"\"b\"\",\uFFFD\uFFFD[31mc\",1,1.0000,0.0000,,\r\n"));
  EXPECT_THAT(csv, Not(HasSubstr("\x1b")));
}

TEST(EventText, EventIsOneLineWhateverItsText) {
  proto::Event event;
  event.type = proto::EventType::kFindingBegun;
  event.user = "bob";
  event.message = "3 GiB on GPU 0\nfake line";
  event.detail = "python \x1b]0;x\x07";
  event.pids = {{12, 34}};
  event.count = 3;
  const std::string text = event_text(event, {});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("finding_begun"));
  EXPECT_THAT(text, HasSubstr("[pid 12 34]"));
  EXPECT_THAT(text, HasSubstr("(3 times)"));
}

TEST(Since, AcceptsTimesAsPeopleWriteThem) {
  const WallTime now(500000h);  // in 2027
  EXPECT_EQ(*parse_since("--since", "90m", now), now - 90min);
  EXPECT_EQ(*parse_since("--since", "7d", now), now - 168h);
  EXPECT_EQ(*parse_since("--since", "1970-01-01T00:00:01Z", now), WallTime(1s));
  EXPECT_TRUE(parse_since("--since", "2026-11-21", now));
  EXPECT_TRUE(parse_since("--since", "2026-11-21 14:05", now));
  for (const char* wrong : {"", "yesterday", "-1d", "5", "2026-11-21x", "99999999999999999999d"}) {
    const auto since = parse_since("--since", wrong, now);
    ASSERT_FALSE(since) << wrong;
    EXPECT_THAT(since.error().message, HasSubstr("--since"));
  }
}

TEST(Since, RefusesFutureTimes) {
  const WallTime now(500000h);
  EXPECT_TRUE(parse_since("--since", "0s", now));
  for (const char* wrong : {"2027-12-24", "2027-12-24 14:05", "2027-12-24T14:05:00Z"}) {
    const auto since = parse_since("--since", wrong, now);
    ASSERT_FALSE(since) << wrong;
    EXPECT_THAT(since.error().message, HasSubstr("is in the future, it is 2027-01-"));
  }
}

}  // namespace
}  // namespace gpurota::cli
