// Programs that run briefly: real processes, on a loop with fake time except where the test is
// about time.
#include "sys/system_programs.h"

#include "sys/sd_event_loop.h"
#include "testing/fake_accounts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::sys {
namespace {

using namespace std::chrono_literals;
using ports::Program;
using ports::ProgramEnd;

class SystemProgramsTest : public ::testing::Test {
 protected:
  static Program shell(const std::string& script, Duration limit = 30s) {
    return {{"/bin/sh", "-c", script}, "{\"what\":\"test\"}\n", "nobody", limit};
  }
  ProgramEnd end_of(const Program& program) { return end_of(programs, program); }
  ProgramEnd end_of(SystemPrograms& runner, const Program& program) {
    std::optional<ProgramEnd> end;
    runner.run(program, [&](const ProgramEnd& how) {
      end = how;
      loop->stop();
    });
    EXPECT_FALSE(end) << "done is never called from within run()";
    EXPECT_TRUE(loop->run());
    return end.value_or(ProgramEnd{});
  }

  std::unique_ptr<SdEventLoop> loop = *SdEventLoop::make();
  std::shared_ptr<testing::FakeAccounts> accounts = [] {
    auto made = std::make_shared<testing::FakeAccounts>();
    made->add_group("nogroup", 65534);
    made->add_user("nobody", 65534, {65534});
    return made;
  }();
  SystemPrograms programs{*loop, accounts, ""};
};

TEST_F(SystemProgramsTest, AProgramGetsItsTextOnStandardInputAndEndsWithItsCode) {
  EXPECT_TRUE(end_of(shell("read line; test \"$line\" = '{\"what\":\"test\"}'")).is_good());
  const ProgramEnd end = end_of(shell("exit 3"));
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.code, 3);
}

TEST_F(SystemProgramsTest, KeepsTheOutputOnlyOfAProgramThatWantsIt) {
  Program program = shell("echo one; echo two; seq 10000");
  EXPECT_EQ(end_of(program).output, "");
  program.keeps_output = true;
  const ProgramEnd end = end_of(program);
  EXPECT_TRUE(end.is_good());
  EXPECT_EQ(end.output.substr(0, 8), "one\ntwo\n");
  EXPECT_EQ(end.output.substr(end.output.size() - 6), "10000\n");
}

TEST_F(SystemProgramsTest, AProgramHasOurEnvironmentOnlyIfItWantsIt) {
  ::setenv("GPUROTA_TEST_VARIABLE", "here", 1);
  Program program = shell("echo \"<$GPUROTA_TEST_VARIABLE>\"");
  program.keeps_output = true;
  EXPECT_EQ(end_of(program).output, "<>\n");
  program.own_environment = true;
  EXPECT_EQ(end_of(program).output, "<here>\n");
  ::unsetenv("GPUROTA_TEST_VARIABLE");
}

TEST_F(SystemProgramsTest, AProgramThatFinishesOutlivesTheRunner) {
  const std::string mark = "/tmp/gpurota-finishes-" + std::to_string(::getpid());
  {
    SystemPrograms runner{*loop, accounts, ""};
    Program program = shell("sleep 0.3; touch " + mark);
    program.finishes = true;
    runner.run(program, [](const ProgramEnd&) {});
    const auto timer =
        loop->add_timer(loop->now() + 200ms, ports::Urgency::kClient, [this] { loop->stop(); });
    EXPECT_TRUE(loop->run());
  }
  for (int i = 0; i < 1000 && ::access(mark.c_str(), F_OK) != 0; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(::access(mark.c_str(), F_OK), 0);
  (void)::unlink(mark.c_str());
}

TEST_F(SystemProgramsTest, ProgramMayIgnoreItsInput) {
  Program program = shell("true");
  program.input.assign(200000, 'x');
  EXPECT_TRUE(end_of(program).is_good());
}

TEST_F(SystemProgramsTest, KeepsTheFirstLineOfStandardError) {
  EXPECT_EQ(end_of(shell("echo; echo first >&2; echo second >&2; exit 1")).complaint, "first");
  EXPECT_EQ(end_of(shell("echo to the output")).complaint, "");
}

TEST_F(SystemProgramsTest, EndlessOutputIsReadAndDiscarded) {
  const ProgramEnd end = end_of(shell("head -c 5000000 /dev/zero | tr '\\0' a >&2; exit 1"));
  EXPECT_EQ(end.code, 1);
  EXPECT_LE(end.complaint.size(), 1024u);
}

TEST_F(SystemProgramsTest, HangingProgramIsKilledWithItsChildren) {
  const ProgramEnd end = end_of(shell("sleep 1000 & sleep 1000", 100ms));
  EXPECT_TRUE(end.timed_out);
  EXPECT_EQ(end.signal, SIGKILL);
}

TEST_F(SystemProgramsTest, ProcessesLeftByAProgramAreKilledWithIt) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(end_of(shell("sleep 1000 & exit 0")).is_good());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s) << "nobody waits for what it left";
}

TEST_F(SystemProgramsTest, MissingProgramIsReported) {
  const ProgramEnd end = end_of({{"/no/such/program"}, "", "nobody", 30s});
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.complaint, "cannot be run: there is no such file");
}

TEST_F(SystemProgramsTest, RunsInRootDirectoryWithACleanEnvironment) {
  ASSERT_EQ(::setenv("GPUROTA_SECRET", "x", 1), 0);
  const ProgramEnd end = end_of(
      shell("test \"$HOME\" = / && test \"$PWD\" = / && test -z \"$GPUROTA_SECRET\" || exit 1"));
  (void)::unsetenv("GPUROTA_SECRET");
  EXPECT_TRUE(end.is_good()) << end.complaint;
}

TEST_F(SystemProgramsTest, RootsProgramsRunAsTheUserThatWasNamedAndInNoGroupOfOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  EXPECT_TRUE(end_of(shell("test \"$(id -u)\" = 65534 && test \"$(id -G)\" = 65534")).is_good());
  Program unknown = shell("true");
  unknown.user = "nosuchuser";
  const ProgramEnd end = end_of(unknown);
  EXPECT_FALSE(end.started);
  EXPECT_NE(end.complaint.find("nosuchuser"), std::string::npos) << end.complaint;
}

TEST_F(SystemProgramsTest, UnderSystemdRequestsAUnitWithUserAndTimeLimit) {
  const std::string log = ::testing::TempDir() + "systemd-run-words";
  const std::string stand_in = ::testing::TempDir() + "systemd-run-stand-in";
  std::ofstream(stand_in) << "#!/bin/sh\necho \"$@\" >" << log
                          << "\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n";
  ASSERT_EQ(::chmod(stand_in.c_str(), 0755), 0);
  SystemPrograms units(*loop, accounts, stand_in);
  EXPECT_EQ(end_of(units, shell("cat >/dev/null; exit 4", 7s)).code, 4);
  std::ifstream words(log);
  const std::string text((std::istreambuf_iterator<char>(words)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("--pipe --wait"), std::string::npos) << text;
  EXPECT_NE(text.find("User=nobody"), std::string::npos) << text;
  EXPECT_NE(text.find("RuntimeMaxSec=7000ms -"), std::string::npos) << text;
}

}  // namespace
}  // namespace gpurota::sys
