#include "jobs/array.h"

#include "jobs/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace gpurota;
using namespace gpurota::jobs;
using ::testing::HasSubstr;

std::string normal(std::string_view text) {
  const auto indices = Indices::parse(text);
  return indices ? to_string(*indices) : indices.error().message;
}

TEST(Indices, AcceptRangesAndSingleNumbers) {
  EXPECT_EQ(normal("1-50"), "1-50");
  EXPECT_EQ(normal("7"), "7");
  EXPECT_EQ(normal("7-9,1,4"), "1,4,7-9");
  EXPECT_EQ(normal("1-3,4-6"), "1-6");
  EXPECT_EQ(normal("0-9999"), "0-9999");
  const Indices some = *Indices::parse("1,4,7-9");
  EXPECT_EQ(some.count(), 5U);
  EXPECT_TRUE(some.has(8));
  EXPECT_FALSE(some.has(5));
  EXPECT_EQ(some.from(5), 7);
  EXPECT_EQ(some.from(10), std::nullopt);
  EXPECT_EQ(to_string(Indices::up_to(3)), "1-3");
  EXPECT_TRUE(Indices::up_to(0).empty());
}

TEST(Indices, RefuseInvalidTextWithARemedy) {
  EXPECT_THAT(normal("5-1"), HasSubstr("write the smaller index first, 1-5"));
  EXPECT_THAT(normal("1-1000000000"), HasSubstr("at most 10000 items"));
  EXPECT_THAT(normal("1-10001"), HasSubstr("at most 10000 items"));
  EXPECT_THAT(normal("1-9999,20000-20001"), HasSubstr("at most 10000 items"));
  EXPECT_THAT(normal("1-99999999999999999999"), HasSubstr("write the first and the last index"));
  EXPECT_THAT(normal("1-3,2"), HasSubstr("the index 2 twice"));
  for (const char* text : {"", "a", "1-", "-1", "1,,2", "1-2-3", "1 - 2", "1\n"}) {
    EXPECT_THAT(normal(text), HasSubstr("write the first and the last index")) << text;
  }
}

TEST(Array, ParsesHowManyItemsRunAtOnce) {
  const auto four = parse_array("1-50%4");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->at_once, 4);
  EXPECT_EQ(to_string(four->indices), "1-50");
  EXPECT_EQ(parse_array("1-50")->at_once, std::nullopt);
  EXPECT_THAT(parse_array("1-5%0").error().message, HasSubstr("from 1 to 256"));
  EXPECT_THAT(parse_array("1-5%1000").error().message, HasSubstr("from 1 to 256"));
  EXPECT_THAT(parse_array("1-5%").error().message, HasSubstr("write 1-50%4 for four"));
}

JobState ended(Phase phase, EndReason reason) {
  JobState state;
  state.phase = phase;
  state.history.push_back({std::nullopt, WallTime(), reason, 0, ""});
  return state;
}

TEST(Items, StartInTheirOrderAndAreCounted) {
  Items items(*Indices::parse("1-3,7"));
  EXPECT_EQ(items.counts(), (ItemCounts{0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(items.next(), 1);
  (void)items.begin(1);
  EXPECT_EQ(items.next(), 2);
  (void)items.begin(2);
  items.rest(1, ended(Phase::kFinished, EndReason::kExited));
  JobState cancelled;
  cancelled.phase = Phase::kCancelled;
  items.rest(3, cancelled);
  EXPECT_EQ(items.next(), 7);
  EXPECT_EQ(items.counts(), (ItemCounts{1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(items_text(items.counts()), "1 running, 1 done, 1 cancelled, 1 waits");
  items.rest(2, ended(Phase::kFailed, EndReason::kUnknown));
  (void)items.begin(7);
  EXPECT_FALSE(items.is_over());
  items.rest(7, ended(Phase::kFailed, EndReason::kExited));
  EXPECT_TRUE(items.is_over());
  EXPECT_EQ(items.counts(), (ItemCounts{0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(items.kind(2), ItemKind::kUnknown);
  EXPECT_EQ(items.state_of(2)->history.size(), 1U);
}

TEST(Items, FailedItemsCanStartAgain) {
  Items items(*Indices::parse("1-4"));
  for (const std::int64_t index : {1, 2, 3}) (void)items.begin(index);
  items.rest(1, ended(Phase::kFinished, EndReason::kExited));
  items.rest(2, ended(Phase::kFailed, EndReason::kExited));
  items.rest(3, ended(Phase::kStopped, EndReason::kLeaseLost));
  EXPECT_EQ(items.kind(3), ItemKind::kFailed);
  EXPECT_TRUE(items.has_failed());
  EXPECT_EQ(items.failed_from(0, 1), std::vector<std::int64_t>{2});
  EXPECT_EQ(items.failed_from(3, 9), std::vector<std::int64_t>{3});
  EXPECT_EQ(items.failed_from(0, 9), (std::vector<std::int64_t>{2, 3}));
  for (const std::int64_t index : {2, 3}) items.rest(index, to_retry(*items.state_of(index)));
  EXPECT_FALSE(items.has_failed());
  EXPECT_EQ(items.counts(), (ItemCounts{0, 1, 0, 0, 0, 3}));
  EXPECT_EQ(items.next(), 2);
  EXPECT_EQ(items.begin(2).history.size(), 1U);
  EXPECT_EQ(items.next(), 3);
  (void)items.begin(3);
  EXPECT_EQ(items.next(), 4);
  items.rest(2, ended(Phase::kFinished, EndReason::kExited));
  items.rest(3, ended(Phase::kFinished, EndReason::kExited));
  items.reset();
  EXPECT_EQ(items.counts(), (ItemCounts{0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(items.next(), 1);
}

TEST(Items, TheWorstExitStatusIsTheHighest) {
  Items items(*Indices::parse("1-4"));
  for (const std::int64_t index : {1, 2, 3, 4}) (void)items.begin(index);
  EXPECT_EQ(items.worst_exit_status(), 0);
  items.rest(1, ended(Phase::kFinished, EndReason::kExited));
  EXPECT_EQ(items.worst_exit_status(), 0);
  items.rest(2, ended(Phase::kStopped, EndReason::kStopped));
  EXPECT_EQ(items.worst_exit_status(), 1);
  JobState failed = ended(Phase::kFailed, EndReason::kExited);
  failed.history.back().code = 7;
  items.rest(3, failed);
  EXPECT_EQ(items.worst_exit_status(), 7);
  JobState killed = ended(Phase::kFailed, EndReason::kSignalled);
  killed.history.back().code = 9;
  items.rest(4, killed);
  EXPECT_EQ(items.worst_exit_status(), 137);
  for (const std::int64_t index : items.failed_from(0, 9)) {
    items.rest(index, to_retry(*items.state_of(index)));
  }
  EXPECT_EQ(items.worst_exit_status(), 0);
}

// A daemon that has just started takes up items in any order.
TEST(Items, AcceptEventsInAnyOrder) {
  Items items(*Indices::parse("1-5"));
  items.rest(2, ended(Phase::kFinished, EndReason::kExited));
  JobState waits;
  waits.phase = Phase::kWaiting;
  items.rest(3, waits);
  (void)items.begin(1);
  EXPECT_EQ(items.next(), 3);
  (void)items.begin(3);
  EXPECT_EQ(items.next(), 4);
  EXPECT_EQ(items.counts(), (ItemCounts{2, 1, 0, 0, 0, 2}));
}

JobSpec sweep() {
  JobSpec spec;
  spec.name = "sweep";
  spec.command = {"./train"};
  spec.array = *Indices::parse("1-50");
  spec.at_once = 4;
  return spec;
}

TEST(ArraySpec, IsReadAsItWasWritten) {
  JobSpec lines = sweep();
  lines.command.clear();
  lines.each = {{"a", "b c"}, {"d"}};
  lines.array = Indices::up_to(2);
  for (const JobSpec& spec : {sweep(), lines}) {
    const auto read = decode_spec(encode(spec));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, spec);
  }
}

TEST(ArraySpec, AnItemIsAJobWithItsIndex) {
  const JobSpec one = item_spec(sweep(), 7);
  EXPECT_FALSE(one.is_array());
  EXPECT_TRUE(check_spec(one));
  EXPECT_EQ(one.command, sweep().command);
  EXPECT_EQ(one.environment.back(),
            (std::pair<std::string, std::string>("GPUROTA_ARRAY_INDEX", "7")));
  JobSpec lines = sweep();
  lines.command.clear();
  lines.each = {{"a"}, {"d"}};
  EXPECT_EQ(item_spec(lines, 2).command, std::vector<std::string>{"d"});
}

TEST(ArraySpec, InvalidSpecIsRefused) {
  const auto why = [](const JobSpec& spec) {
    const auto may = check_spec(spec);
    return may ? std::string() : may.error().message;
  };
  EXPECT_EQ(why(sweep()), "");
  JobSpec spec = sweep();
  spec.restart = RestartPolicy::kAlways;
  EXPECT_THAT(why(spec), HasSubstr("never ends"));
  spec = sweep();
  spec.at_once = 0;
  EXPECT_THAT(why(spec), HasSubstr("from 1 to 256"));
  spec = sweep();
  spec.array = {};
  EXPECT_THAT(why(spec), HasSubstr("only the items of an array"));
  spec = sweep();
  spec.each = {{"a"}};
  EXPECT_THAT(why(spec), HasSubstr("give no other"));
  spec.command.clear();
  EXPECT_THAT(why(spec), HasSubstr("their numbers, from 1"));
  spec.each = {{"a"}, {}};
  spec.array = Indices::up_to(2);
  EXPECT_THAT(why(spec), HasSubstr("command 2 of the array is empty"));
}

TEST(ArraySpec, LogsOfAllItemsShareABound) {
  JobSpec spec = sweep();
  EXPECT_EQ(log_bound(spec), Bytes(mib(256).count() / 50));
  spec.array = *Indices::parse("1-10");
  EXPECT_EQ(log_bound(spec), kLogBound);
  spec.array = *Indices::parse("1-10000");
  EXPECT_EQ(log_bound(spec), Bytes(std::uint64_t{64} << 10));
  EXPECT_EQ(logs_bound(spec), Bytes(std::uint64_t{10000} * 64 * 1024));
  spec.output = Output::kJournal;
  EXPECT_TRUE(logs_bound(spec).is_zero());
}

}  // namespace
