#include "cli/args/args.h"
#include "cli/jobs/filler_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

FillerOptions parse(const Words& words) {
  const auto arguments = parse_arguments(words);
  if (!arguments) {
    ADD_FAILURE() << arguments.error().message;
    return {};
  }
  return std::get<FillerOptions>(arguments->command);
}
std::string refusal(const Words& words) {
  const auto arguments = parse_arguments(words);
  return arguments ? "accepted" : arguments.error().message;
}

TEST(FillerArgs, AddParsesEveryOption) {
  const FillerOptions filler =
      parse({"filler",        "add",      "fold",       "--gpu-ids",    "0,2",
             "--instances=2", "--memory", "88%",        "--idle-after", "5m",
             "--grace",       "3s",       "--on-yield", "stop",         "--env",
             "HOME",          "--",       "./fold",     "--memory",     "1"});
  EXPECT_EQ(filler.name, "fold");
  EXPECT_THAT(filler.gpu_ids, ElementsAre("0", "2"));
  EXPECT_EQ(filler.instances, 2);
  EXPECT_EQ(filler.memory, (SizeSpec{Bytes(), 88}));
  EXPECT_EQ(filler.idle_after, 5min);
  EXPECT_EQ(filler.grace, 3s);
  EXPECT_EQ(filler.on_yield, "stop");
  EXPECT_THAT(filler.variables, ElementsAre("HOME"));
  EXPECT_THAT(filler.command, ElementsAre("./fold", "--memory", "1"));
}

TEST(FillerArgs, SaysWhatToWriteInstead) {
  EXPECT_THAT(refusal({"filler", "add", "fold"}), HasSubstr("after '--'"));
  EXPECT_THAT(refusal({"filler", "add", "--", "true"}), HasSubstr("name of the filler first"));
  EXPECT_THAT(refusal({"filler", "add", "fold", "./fold", "--", "x"}), HasSubstr("after '--'"));
  EXPECT_THAT(refusal({"filler", "start", "fold"}), HasSubstr("did you mean 'filler resume'?"));
  EXPECT_THAT(refusal({"filler", "pause"}), HasSubstr("which filler"));
  EXPECT_THAT(refusal({"filler", "add", "f", "--instances", "0", "--", "x"}),
              HasSubstr("--instances"));
  EXPECT_THAT(refusal({"filler", "add", "f", "--idle-after", "soon", "--", "x"}),
              HasSubstr("--idle-after"));
  EXPECT_THAT(refusal({"filler", "add", "f", "--env", "A=b", "--", "x"}), HasSubstr("--env-file"));
  EXPECT_THAT(refusal({"filler", "pause", "f", "--memory", "1G"}), HasSubstr("--memory"));
  EXPECT_THAT(refusal({"filler", "add", "f", "--of-free", "8G", "--", "x"}), HasSubstr("80%"));
}

TEST(FillerArgs, HelpIsRecognized) {
  const auto arguments = parse_arguments({"filler", "add", "--help"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(std::get<HelpOptions>(arguments->command).topic, "filler");
}

TEST(FillerArgs, RunMayBeAFillerButNotInAReservation) {
  const auto arguments = parse_arguments({"run", "--filler", "--", "x"});
  ASSERT_TRUE(arguments);
  EXPECT_TRUE(std::get<RunOptions>(arguments->command).filler);
  EXPECT_THAT(refusal({"run", "--lease", "L1", "--filler", "--", "x"}), HasSubstr("--lease"));
}

TEST(FillerView, ShowsItsGpusAndWhyItIsNotOnOthers) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  proto::Filler filler;
  filler.name = "fold";
  filler.user = "alice";
  filler.state = "on";
  filler.command = {"./fold", "-x"};
  proto::FillerPlace on, leased, idle;
  on.state = "on";
  on.lease_id = LeaseId{7};
  leased.gpu = 1;
  leased.state = "busy";
  leased.wait_reason = {proto::ReasonCode::kLeased, "a lease has GPU 1"};
  idle.gpu = 2;
  idle.state = "resting";
  idle.wait_reason = {proto::ReasonCode::kIdleTime, "it starts at {time} if GPU 2 stays idle",
                      WallTime(60s)};
  filler.places = {on, leased, idle};
  const std::string text = fillers_text({filler}, {120, false}, WallTime(0s));
  EXPECT_THAT(text, HasSubstr("fold"));
  EXPECT_THAT(text, HasSubstr("running"));
  EXPECT_THAT(text, HasSubstr("L7"));
  EXPECT_THAT(text, HasSubstr("a lease has GPU 1"));
  EXPECT_THAT(text, HasSubstr("it starts at 00:01:00 if GPU 2 stays idle"));
  EXPECT_THAT(text, HasSubstr("./fold -x"));
  on.state = "evicted";
  EXPECT_EQ(place_text(on, WallTime(0s)), "evicted") << "it comes back";
  on.wait_reason = {proto::ReasonCode::kWanted, "somebody waits for GPU 0"};
  EXPECT_EQ(place_text(on, WallTime(0s)), "evicted: somebody waits for GPU 0");
  on.state = "free";
  on.wait_reason.reset();
  EXPECT_EQ(place_text(on, WallTime(0s)), "idle");
  EXPECT_EQ(fillers_text({}, {80, false}, WallTime(0s)), "no fillers\n");
}

}  // namespace
}  // namespace gpurota::cli
