#include "jobs/record.h"

#include <gtest/gtest.h>

namespace gpurota::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

JobSpec full() {
  JobSpec spec;
  spec.name = "web-1.2";
  spec.options = {"--memory", "8G", "--note", "two\nlines"};
  spec.command = {"./a.out", "", "with space", "\xff\x01"};
  spec.workdir = "/home/a b";
  spec.environment = {{"TOKEN", "a=b=c"}, {"EMPTY", ""}};
  spec.restart = RestartPolicy::kOnFailure;
  spec.after = {"db", "cache"};
  spec.after_success = {"prepare"};
  spec.after_end = {"load", "db"};
  spec.output = Output::kJournal;
  return spec;
}

TEST(Record, SpecIsReadBackUnchanged) { EXPECT_EQ(*decode_spec(encode(full())), full()); }

TEST(Record, SpecWithATerminalIsReadBackUnchanged) {
  JobSpec spec = full();
  spec.output = Output::kFile;
  spec.tty = true;
  EXPECT_EQ(*decode_spec(encode(spec)), spec);
}

TEST(Record, StateIsReadBackUnchanged) {
  JobState state;
  state.phase = Phase::kStopping;
  state.failures = 7;
  state.running_since = TimePoint(seconds(123));
  state.started = WallTime(milliseconds(1'700'000'000'123));
  state.end_reason = EndReason::kOverLimit;
  state.end_detail = "9 GiB of 8 GiB";
  state.start_again = true;
  state.removed = true;
  state.retries_items = true;
  state.asking = true;
  state.brief = 3;
  state.most_used = mib(700);
  state.history = {
      {std::nullopt, WallTime(seconds(5)), EndReason::kCannotStart, 0, "no a.out"},
      {WallTime(seconds(1)), WallTime(seconds(2)), EndReason::kSignalled, 11, "", gib(3)},
      {WallTime(seconds(3)), WallTime(seconds(4)), EndReason::kExited, 0, ""}};
  const auto read = decode_state(encode(state));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->phase, state.phase);
  EXPECT_EQ(read->failures, 7);
  EXPECT_EQ(read->running_since, state.running_since);
  EXPECT_EQ(read->started, state.started);
  EXPECT_EQ(read->end_reason, state.end_reason);
  EXPECT_EQ(read->end_detail, state.end_detail);
  EXPECT_TRUE(read->start_again);
  EXPECT_TRUE(read->retries_items);
  EXPECT_TRUE(read->removed);
  EXPECT_TRUE(read->asking);
  EXPECT_EQ(read->brief, 3);
  EXPECT_EQ(read->most_used, mib(700));
  EXPECT_EQ(read->history, state.history);
}

// Byte for byte what a version before this one has stored: it must be read for as long as there are
// such stores.
TEST(Record, RecordOfAnEarlierVersionIsRead) {
  using namespace std::string_literals;
  const auto spec = decode_spec(
      "name\0web\0option\0--memory\0option\0008G\0argument\0python\0argument\0serve.py\0"
      "workdir\0/srv\0restart\0on-failure\0variable\0TOKEN=a=b\0after\0db\0"s);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name, "web");
  EXPECT_EQ(spec->options, (std::vector<std::string>{"--memory", "8G"}));
  EXPECT_EQ(spec->command, (std::vector<std::string>{"python", "serve.py"}));
  EXPECT_EQ(spec->workdir, "/srv");
  EXPECT_EQ(spec->restart, RestartPolicy::kOnFailure);
  EXPECT_EQ(spec->environment.at(0).second, "a=b");
  EXPECT_EQ(spec->after, std::vector<std::string>{"db"}) << "the order at boot";
  EXPECT_TRUE(spec->after_success.empty() && spec->after_end.empty());
  EXPECT_FALSE(spec->tty);
  EXPECT_EQ(spec->output, Output::kFile);
  const auto state = decode_state(
      "phase\0running\0failures\0002\0running_since_ns\000123000000000\0started_"
      "ms\0001700000000123\0"
      "end_detail\0\0start_again\0000\0end\000- 5000 cannot-start 0 no a.out\0"s);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->phase, Phase::kRunning);
  EXPECT_EQ(state->failures, 2);
  EXPECT_FALSE(state->asking);
  EXPECT_EQ(state->history.at(0).detail, "no a.out");
  EXPECT_FALSE(state->most_used || state->history.at(0).most_used);
}

TEST(Record, OrdersAndReportsAreReadBackUnchanged) {
  const KeeperOrders orders{1000, "alice", "/usr/bin/gpurota", "/run/gpurota", full()};
  EXPECT_EQ(*decode_orders(encode(orders)), orders);
  const KeeperReport report{true, 9, ""};
  EXPECT_EQ(*decode_report(encode(report)), report);
}

TEST(Record, TruncatedRecordIsRefused) {
  const std::string text = encode(KeeperReport{false, 3, ""});
  for (std::size_t i = 0; i < text.size(); ++i) EXPECT_FALSE(decode_report(text.substr(0, i))) << i;
  const std::string spec = encode(full());
  EXPECT_FALSE(decode_spec(std::string_view(spec).substr(0, spec.size() - 1)));
}

TEST(Record, OrdersWithoutAUidAreRefused) { EXPECT_FALSE(decode_orders(encode(full()))); }

TEST(Record, UnknownKeysOfALaterVersionAreIgnored) {
  using namespace std::string_literals;
  EXPECT_EQ(*decode_spec(encode(full()) + "colour\0green\0"s), full());
}

TEST(Record, NonsenseIsAnError) {
  using namespace std::string_literals;
  for (const std::string& text : {"x"s, "restart\0sometimes\0"s, "variable\0x\0"s}) {
    EXPECT_FALSE(decode_spec(encode(full()) + text));
  }
  for (const std::string& text : {"most_used\0-1\0"s, "end_most_used\0001\0"s}) {
    EXPECT_FALSE(decode_state(text)) << text;
  }
}

TEST(CheckSpec, RefusesNamesThatWouldBePathsOrOptions) {
  for (const char* name : {"", "../x", "a/b", "-x", ".x", "a b", "\xff"}) {
    JobSpec spec = full();
    spec.name = name;
    EXPECT_FALSE(check_spec(spec)) << name;
  }
}

TEST(CheckSpec, RefusesInvalidCommands) {
  JobSpec spec = full();
  spec.command.clear();
  EXPECT_FALSE(check_spec(spec));
  spec = full();
  spec.workdir = "relative";
  EXPECT_FALSE(check_spec(spec));
  spec = full();
  spec.environment = {{"A=B", "c"}};
  EXPECT_FALSE(check_spec(spec));
  spec = full();
  spec.command[1] = std::string("a\0b", 3);
  EXPECT_FALSE(check_spec(spec));
  spec = full();
  spec.environment = {{"A", std::string(kMaxSpecBytes, 'x')}};
  EXPECT_FALSE(check_spec(spec));
}

TEST(CheckSpec, RefusesAChainThatNamesAJobTwice) {
  JobSpec spec = full();
  spec.after_end = {"load", "load"};
  EXPECT_FALSE(check_spec(spec));
  spec.after_end = {"prepare"};
  EXPECT_TRUE(check_spec(spec)) << "its success is its end, too";
}

TEST(CheckSpec, RefusesATerminalThatIsTheJournal) {
  JobSpec spec = full();
  spec.tty = true;
  EXPECT_FALSE(check_spec(spec));
}

TEST(CheckSpec, RefusesOptionsThatChooseWhatIsExecuted) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--", "sh"}, {"--memory", "1G", "--"}, {"--runtime-dir", "/x"}, {"--runtime-dir=/x"}}) {
    JobSpec spec = full();
    spec.options = options;
    EXPECT_FALSE(check_spec(spec)) << options.front();
  }
}

}  // namespace
}  // namespace gpurota::jobs
