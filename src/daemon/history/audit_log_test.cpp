#include "daemon/history/audit_log.h"

#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <sys/stat.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

AuditRecord record_of(uid_t uid) {
  AuditRecord record;
  record.uid = uid;
  record.pid = 4711;
  record.lease = LeaseId{3};
  record.operation = "Acquire";
  record.bytes = gib(8);
  return record;
}

long lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(AuditLog, SaysWhoDidWhatAndWithWhichResult) {
  EXPECT_EQ(audit_line(record_of(1000), WallTime(1ms)),
            "{\"time\":\"1970-01-01T00:00:00.001Z\",\"uid\":1000,\"pid\":4711,\"lease\":\"L3\","
            "\"operation\":\"Acquire\",\"bytes\":8589934592,\"result\":\"ok\"}\n");
  AuditRecord denied = record_of(1000);
  denied.error_code = "NoGpu";
  denied.count = 7;
  EXPECT_THAT(audit_line(denied, WallTime(1ms)),
              HasSubstr("\"result\":\"denied\",\"error_code\":\"NoGpu\",\"count\":7}"));
}

TEST(AuditLog, IsForTheAdministratorAlone) {
  const TempDir dir;
  auto log = AuditLog::open(dir.file("audit"), mib(1));
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->write(record_of(1000), WallTime(1ms)));
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("audit/1000.jsonl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(dir.file("audit").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

// No user can shorten the log of another.
TEST(AuditLog, FloodOfOneUserStaysWithinItsBudgetAndKeepsOtherLogs) {
  const TempDir dir;
  auto log = AuditLog::open(dir.file("audit"), Bytes(64 << 10));
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->write(record_of(1001), WallTime(1ms)));
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(log->write(record_of(1000), WallTime(1ms)));
  EXPECT_EQ(lines_of(read_file(dir.file("audit/1001.jsonl"))), 1);
  const std::string kept =
      read_file(dir.file("audit/1000.jsonl.1")) + read_file(dir.file("audit/1000.jsonl"));
  EXPECT_LE(kept.size(), 64u << 10);
  EXPECT_GE(kept.size(), 32u << 10);
  EXPECT_EQ(kept.back(), '\n');
}

TEST(AuditLog, IsWholeAfterACrashInTheMiddleOfALine) {
  const TempDir dir;
  ASSERT_TRUE(AuditLog::open(dir.file("audit"), mib(1)));
  const std::string good = audit_line(record_of(1000), WallTime(1ms));
  write_file(dir.file("audit/1000.jsonl"), good + good.substr(0, 20));
  auto log = AuditLog::open(dir.file("audit"), mib(1));
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->write(record_of(1000), WallTime(1ms)));
  EXPECT_EQ(read_file(dir.file("audit/1000.jsonl")), good + good);
}

TEST(AuditLog, ServesMoreUsersThanItKeepsFilesOpen) {
  const TempDir dir;
  auto log = AuditLog::open(dir.file("audit"), mib(1));
  ASSERT_TRUE(log);
  for (int round = 0; round < 2; ++round) {
    for (uid_t uid = 0; uid < 100; ++uid) {
      ASSERT_TRUE(log->write(record_of(uid), WallTime(1ms)));
    }
  }
  EXPECT_EQ(lines_of(read_file(dir.file("audit/99.jsonl"))), 2);
}

}  // namespace
}  // namespace gpurota::daemon
