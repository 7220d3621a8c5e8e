// Many machines are asked in parallel; one that hangs, refuses or sends without end harms no other.
// A script replaces ssh.
#include "cli/hosts/ask.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace gpurota::cli {
namespace {

using std::chrono::milliseconds;

// Waits a moment, because a killed process does not end at once. A zombie that nobody reaps, as in
// a container without an init, counts as ended.
bool is_over(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    std::string stat;
    std::getline(in, stat);
    if (stat.empty() || stat.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

class AskHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "ask_hosts." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    // The host is the word after "--"; each behaves according to its name.
    std::ofstream(folder_ + "/ssh") << R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
  good*) printf 'answer of %s to %s' "$2" "$3" ;;
  hangs*) sleep 600 & echo $! >> )" << folder_
                                    << R"(/pids; wait ;;
  endless*) exec cat /dev/zero ;;
  chatty*) head -c 3000000 /dev/zero | tr '\0' x >&2; echo >&2; echo 'the end' >&2; exit 1 ;;
  refuses*) echo 'Some banner' >&2; echo "$2: Permission denied (publickey)." >&2; exit 255 ;;
  silent*) exit 255 ;;
  lacks*) echo 'sh: 1: gpurota: not found' >&2; exit 127 ;;
  older*) echo "gpurota: there is no option '--x'" >&2; echo 'more of it' >&2; exit 2 ;;
  wrong*) echo "gpurota: --since: 'x' is not a time" >&2; exit 2 ;;
  daemonless*) echo 'gpurota: gpurotad is not running' >&2; exit 1 ;;
  killed*) kill -KILL $$ ;;
  stays*) (sleep 20 & ) 1>&- ; printf done ;;
esac
)";
    std::filesystem::permissions(folder_ + "/ssh", std::filesystem::perms::owner_all);
    ::setenv("GPUROTA_SSH", (folder_ + "/ssh").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("GPUROTA_SSH");
    std::filesystem::remove_all(folder_);
  }

  std::string said(const std::string& host, const AskLimits& limits = {}) {
    const auto answers = ask_hosts({host}, "what?", limits);
    return answers[0].text ? *answers[0].text : "error: " + answers[0].text.error().message;
  }

  std::string folder_;
};

TEST_F(AskHosts, AnswersComeInTheOrderOfTheHosts) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 40; ++i) hosts.push_back("good" + std::to_string(i));
  const auto answers = ask_hosts(hosts, "what?", {.at_once = 7});
  ASSERT_EQ(answers.size(), hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    EXPECT_EQ(answers[i].host, hosts[i]);
    EXPECT_EQ(answers[i].text.value_or("error"), fmt::format("answer of {} to what?", hosts[i]));
  }
}

TEST_F(AskHosts, FailureOfAHostIsReportedInALine) {
  EXPECT_EQ(said("refuses1"), "error: cannot be reached: refuses1: Permission denied (publickey).");
  EXPECT_EQ(said("silent"), "error: cannot be reached: ssh does not say why");
  EXPECT_EQ(said("lacks"), "error: there is no gpurota on its PATH");
  EXPECT_EQ(said("older"), "error: there is no option '--x' (is its gpurota older?)");
  EXPECT_EQ(said("wrong"), "error: --since: 'x' is not a time");
  EXPECT_EQ(said("daemonless"), "error: gpurotad is not running");
  EXPECT_EQ(said("killed"), "error: ssh was ended by signal 9");
  EXPECT_EQ(said("chatty"), "error: the end");
  EXPECT_EQ(said("endless", {.bytes = std::size_t{2} << 20}),
            "error: its answer is longer than 2 MiB");
}

TEST_F(AskHosts, HungHostTimesOutWithoutDelayingOthers) {
  const auto answers =
      ask_hosts({"hangs1", "good", "hangs2"}, "what?", {.each = milliseconds(300)});
  EXPECT_EQ(answers[0].text.error().message, "no answer within 1 s");
  EXPECT_EQ(*answers[1].text, "answer of good to what?");
  EXPECT_FALSE(answers[2].text);
  // No process of any ssh is left.
  std::ifstream pids(folder_ + "/pids");
  int left = 0;
  for (pid_t pid = 0; pids >> pid; ++left) EXPECT_TRUE(is_over(pid)) << pid;
  EXPECT_EQ(left, 2);
}

TEST_F(AskHosts, DoesNotWaitForBackgroundProcessesOfSsh) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(said("stays", {.each = milliseconds(30000)}), "done");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(25000));
}

TEST_F(AskHosts, MissingSshIsReported) {
  ::setenv("GPUROTA_SSH", "/no/such/ssh", 1);
  EXPECT_EQ(said("good"),
            "error: cannot be reached: gpurota: cannot execute ssh; is openssh-client installed?");
}

}  // namespace
}  // namespace gpurota::cli
