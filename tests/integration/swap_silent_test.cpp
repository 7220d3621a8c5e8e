// Tenants that do not answer while others wait, each in a different way. Each way has a time limit.
#include "swap_fixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace gpurota::testing {
namespace {

using std::chrono::milliseconds;

config::Config with_deadlines(milliseconds longest_drain, milliseconds stopped_deadline) {
  config::Config config = with_turns();
  config.turns.yield_deadline = milliseconds(300);
  config.turns.longest_drain = longest_drain;
  config.turns.stopped_deadline = stopped_deadline;
  return config;
}

class SilentTest : public SwapTest {
 protected:
  explicit SilentTest(const config::Config& config) : SwapTest(config) {}
  SilentTest() : SilentTest(with_deadlines(std::chrono::seconds(2), std::chrono::minutes(10))) {}

  bool is_there(std::uint64_t lease) {
    const auto seen = turns().leases;
    return std::any_of(seen.begin(), seen.end(),
                       [&](const auto& each) { return each.lease_id.value == lease; });
  }
  bool was_told(const std::string& text) {
    const auto events = daemon.call(proto::Events{});
    return events && std::any_of(events->events.begin(), events->events.end(), [&](const auto& e) {
             return e.message.find(text) != std::string::npos;
           });
  }
  std::vector<std::string> program(std::uint64_t lease, const char* mode) {
    std::vector<std::string> argv{SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(lease),
                                  std::to_string(gib(16).count())};
    if (mode) argv.emplace_back(mode);
    return argv;
  }
};

TEST_F(SilentTest, SilentTenantIsWarnedAndLosesItsLease) {
  const std::uint64_t kept = make_lease();
  Child silent(program(kept, "lazy"));
  ASSERT_EQ(silent.read_line(), "granted");
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease()));
  other.set_busy(true);
  EXPECT_EQ(other.grow(gib(16)), GPUROTA_OK);
  EXPECT_TRUE(was_told("s unless its work ends"));
  EXPECT_TRUE(was_told("is ended: its work did not end"));
  EXPECT_FALSE(is_there(kept));
}

class VanishedTest : public SilentTest {
 protected:
  VanishedTest() : SilentTest(with_deadlines(std::chrono::minutes(10), std::chrono::minutes(10))) {}
};

TEST_F(VanishedTest, NobodyWaitsForATenantThatTheDriverNoLongerLists) {
  const std::uint64_t kept = make_lease();
  Child silent(program(kept, "lazy"));
  ASSERT_EQ(silent.read_line(), "granted");
  daemon.probe.set_process(gpu(), silent.pid(), gib(16));
  const int seen = daemon.probe.samples_read();
  ASSERT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 2; }));
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease()));
  other.set_busy(true);
  const std::uint32_t asked = other.ask(gib(16));
  ASSERT_TRUE(eventually([&] { return was_told("does not give its turn back"); }));
  EXPECT_FALSE(other.answered(asked)) << "its work may go on";
  daemon.probe.set_process(gpu(), silent.pid(), Bytes());
  EXPECT_TRUE(eventually([&] { return other.answered(asked).has_value(); }));
  EXPECT_TRUE(is_there(kept));
}

TEST_F(VanishedTest, OthersWaitForATenantThatWasNeverListed) {
  Child silent(program(make_lease(), "lazy"));
  ASSERT_EQ(silent.read_line(), "granted");
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease()));
  other.set_busy(true);
  const std::uint32_t asked = other.ask(gib(16));
  ASSERT_TRUE(eventually([&] { return was_told("does not give its turn back"); }));
  const int seen = daemon.probe.samples_read();
  ASSERT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 40; }));
  EXPECT_FALSE(other.answered(asked));
}

// Like a breakpoint in cuda-gdb: the debugger stops all threads, and the kernel on the GPU does not
// end.
class TracedTest : public SilentTest {
 protected:
  TracedTest() : SilentTest(with_deadlines(std::chrono::minutes(10), std::chrono::seconds(4))) {}
  static bool seize(pid_t pid) {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) return false;
    if (::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return false;
    return ::waitpid(pid, nullptr, __WALL) == pid;
  }
  // Seizes every thread of the process.
  static bool seize_all(pid_t pid, std::vector<pid_t>* seized) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      seized->push_back(std::stoi(entry.path().filename().string()));
      if (!seize(seized->back())) return false;
    }
    return true;
  }
};

TEST_F(TracedTest, ProgramAtABreakpointLosesItsLeaseOnlyIfItsMemoryIsNeeded) {
  const std::uint64_t kept = make_lease();
  Child traced(program(kept, nullptr));
  ASSERT_EQ(traced.read_line(), "granted");
  std::vector<pid_t> threads;
  if (!seize_all(traced.pid(), &threads)) GTEST_SKIP() << "nothing can be traced here";
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease()));
  other.set_busy(true);
  EXPECT_EQ(other.grow(gib(6)), GPUROTA_OK) << "there is room beside it";
  EXPECT_TRUE(is_there(kept));
  const std::uint32_t more = other.ask(gib(10));
  ASSERT_TRUE(eventually([&] { return was_told("of it is stopped"); }));
  EXPECT_FALSE(other.answered(more));
  EXPECT_TRUE(eventually([&] {
    // A tracer must wait for the end of each thread that it traces.
    for (const pid_t thread : threads) (void)::waitpid(thread, nullptr, __WALL | WNOHANG);
    return !is_there(kept);
  }));
  EXPECT_TRUE(eventually([&] { return other.answered(more).has_value(); }));
}

TEST_F(TracedTest, AProcessThatContinuesInTimeLosesNothing) {
  const std::uint64_t kept = make_lease();
  Child traced(program(kept, nullptr));
  ASSERT_EQ(traced.read_line(), "granted");
  std::vector<pid_t> threads;
  if (!seize_all(traced.pid(), &threads)) GTEST_SKIP() << "nothing can be traced here";
  SwapClient other(daemon.tenant_socket());
  ASSERT_TRUE(other.join(make_lease()));
  other.set_busy(true);
  const std::uint32_t asked = other.ask(gib(16));
  ASSERT_TRUE(eventually([&] { return was_told("of it is stopped"); }));
  for (const pid_t thread : threads) (void)::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  EXPECT_TRUE(eventually([&] { return other.answered(asked).has_value(); }));
  EXPECT_TRUE(is_there(kept));
}

}  // namespace
}  // namespace gpurota::testing
