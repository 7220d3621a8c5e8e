#include "cli/views.h"

#include "base/text.h"
#include "proto/text_forms.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::cli {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

proto::Status::Reply a_status() {
  proto::Status::Reply reply;
  for (int i = 0; i < 2; ++i) {
    proto::Gpu& gpu = reply.gpus.emplace_back();
    gpu.index = i;
    gpu.name = "NVIDIA H100 80GB HBM3";
    gpu.state = i == 0 ? proto::GpuState::kInUse : proto::GpuState::kAvailable;
    gpu.memory_bytes = gib(80);
    gpu.reserved_bytes = i == 0 ? gib(8) : Bytes();
  }
  proto::Lease& lease = reply.leases.emplace_back();
  lease.lease_id = {12};
  lease.user = "alice";
  lease.share = proto::Share::kSlice;
  lease.state = proto::LeaseState::kActive;
  lease.since = *proto::parse_time("2026-11-20T14:05:00Z");
  lease.command = {{"python", "train me.py"}};
  lease.note = "night run";
  for (int i = 0; i < 2; ++i) {
    proto::LeaseGpu& gpu = lease.gpus.emplace_back();
    gpu.index = i;
    gpu.limit_bytes = gib(8);
    gpu.used_bytes = mib(512);
  }
  return reply;
}

class Views : public ::testing::Test {
 protected:
  Views() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  const WallTime later_ = *proto::parse_time("2026-11-21T01:00:00Z");
};

TEST_F(Views, StatusIsTheTableThatPeopleKnow) {
  EXPECT_EQ(
      status_text(a_status(), {}, later_),
      "GPU  NAME                   STATE      USED  RESERVED    SIZE\n"
      "  0  NVIDIA H100 80GB HBM3  in use      0 B     8 GiB  80 GiB\n"
      "  1  NVIDIA H100 80GB HBM3  available   0 B       0 B  80 GiB\n"
      "\n"
      "LEASE  USER   GPU  SHARE  LIMIT     USED  SINCE         COMMAND\n"
      "L12    alice    0  slice  8 GiB  512 MiB  Nov 20 14:05  night run (python 'train me.py')\n"
      "                1         8 GiB  512 MiB\n");
}

TEST_F(Views, ALeaseOfTodayHasTheTimeOnly) {
  const WallTime soon = *proto::parse_time("2026-11-20T23:00:00Z");
  EXPECT_NE(status_text(a_status(), {}, soon).find("  14:05  "), std::string::npos);
}

TEST_F(Views, LinesFitTheTerminal) {
  proto::Status::Reply reply = a_status();
  reply.leases[0].note = std::string(300, 'n');
  for (const std::size_t width : {72, 80, 120}) {
    for (const std::string& line : lines_of(status_text(reply, {width, false}, later_))) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST_F(Views, ForeignTextCannotDriveTheTerminal) {
  proto::Status::Reply reply = a_status();
  reply.gpus[0].name = "\x1b[31m\nL99";
  reply.gpus[0].detail = "\a\xff";
  reply.leases[0].user = "al\tice\x7f";
  reply.leases[0].note = "\xe2\x80\xae";
  const std::string text = status_text(reply, {100, false}, later_);
  EXPECT_EQ(text.find_first_of("\x1b\a\t\x7f"), std::string::npos);
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(lines_of(text).size(), 7u);
}

TEST_F(Views, WideCharactersKeepTheColumnsInLine) {
  proto::Status::Reply reply = a_status();
  reply.gpus[1].name = "世界";
  const auto lines = lines_of(status_text(reply, {}, later_));
  const auto column = [](const std::string& line, const char* word) {
    return display_width(line.substr(0, line.find(word)));
  };
  EXPECT_EQ(column(lines[1], "in use"), column(lines[2], "available"));
}

TEST_F(Views, ColourIsOnlyThereWhenWanted) {
  EXPECT_EQ(status_text(a_status(), {80, false}, later_).find('\033'), std::string::npos);
  EXPECT_NE(status_text(a_status(), {80, true}, later_).find("\033[32mavailable\033[0m"),
            std::string::npos);
}

TEST_F(Views, NoGpuPointsToDoctor) {
  EXPECT_NE(status_text({}, {}, later_).find("gpurota doctor"), std::string::npos);
}

TEST_F(Views, PsShowsWhoHasNoLease) {
  proto::ListProcesses::Reply reply;
  proto::Process& process = reply.processes.emplace_back();
  process.pid = 4711;
  process.type = proto::ProcessType::kCompute;
  process.used_bytes = mib(518);
  process.command = {{"./a.out"}};
  EXPECT_EQ(ps_text(reply, {}),
            "GPU   PID  USER  TYPE      MEMORY  LEASE  LIMITED  COMMAND\n"
            "  0  4711  ?     compute  518 MiB  -      -        ./a.out\n");
  EXPECT_EQ(ps_text({}, {}), "no process on any GPU\n");
}

TEST_F(Views, DoctorShowsTheRemedyOfWhatIsWrongOnly) {
  const std::vector<proto::Check> checks = {
      {"driver", proto::CheckStatus::kOk, "580", "not shown"},
      {"cgroup v2", proto::CheckStatus::kWarning, "cannot be written", "run as root"}};
  EXPECT_EQ(doctor_text(checks, {}),
            "ok       driver     580\n"
            "warning  cgroup v2  cannot be written\n"
            "         -> run as root\n");
}

TEST(Fit, CutsAtTerminalColumns) {
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("世界世", 5), "世界…");
  EXPECT_EQ(fit("世界世", 4), "世…");
  EXPECT_EQ(fit("abc", 0), "");
}

}  // namespace
}  // namespace gpurota::cli
