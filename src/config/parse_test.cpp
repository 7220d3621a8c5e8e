#include "config/changes.h"
#include "config/loaded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::config {
namespace {

using testing::HasSubstr;

// The text as the only file.
Result<Config> parse(std::string_view text, const std::string& file) {
  Loaded loaded = config::parse({{file, std::string(text)}});
  if (loaded.mistake_count() > 0) return fail(Code::kInvalid, mistakes_text(loaded));
  return std::move(loaded.config);
}

std::string error_of(std::string_view text) {
  const auto result = parse(text, "gpurota.toml");
  return result ? "" : result.error().message;
}

TEST(Config, EmptyFileGivesTheDefaults) { EXPECT_EQ(*parse("", "f"), Config{}); }

TEST(Config, TakesEverySetting) {
  const auto config = parse(R"(
group = "gpu"
privacy = "open"
enforcement = "driver"
unreserved_threshold = "512M"
watch_period = "0.5s"
grace = "30s"
reconnect_grace = "2m"
max_leases_per_user = 3
max_tenants_per_lease = 4
max_connections_per_user = 5
program_notices = false
)",
                            "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->group, "gpu");
  EXPECT_EQ(config->privacy, Privacy::kOpen);
  EXPECT_EQ(config->enforcement, Enforcement::kDriver);
  EXPECT_EQ(config->unreserved_threshold, mib(512));
  EXPECT_EQ(config->watch_period.count(), 500);
  EXPECT_EQ(config->grace.count(), 30000);
  EXPECT_EQ(config->reconnect_grace.count(), 120000);
  EXPECT_EQ(config->max_leases_per_user, 3);
  EXPECT_EQ(config->max_tenants_per_lease, 4);
  EXPECT_EQ(config->max_connections_per_user, 5);
  EXPECT_FALSE(config->program_notices);
}

// No surprises by default; docs/design/queue.md gives the reasons for the defaults.
TEST(Config, DefaultsLimitOnlyHoldingUnusedGpus) {
  const UserLimits limits = default_limits();
  EXPECT_EQ(limits.gpus, UserLimits::kUnlimited);
  EXPECT_EQ(limits.duration, UserLimits::kUnlimitedTime);
  EXPECT_EQ(limits.waiting, 64);
  EXPECT_EQ(Config{}.keep_free_gpus, std::chrono::hours(1));
  EXPECT_EQ(Config{}.turns.stopped_deadline, std::chrono::minutes(10));
  EXPECT_EQ(Config{}.turns.longest_drain, std::chrono::minutes(10));
  EXPECT_EQ(Config{}.watch.unused, WatchAction::kReport);
}

TEST(Config, AcceptsTheExampleOfTheManual) {
  const auto config = parse(R"(
[limits]
hours = 600            # of GPUs in a week
waiting = 16
# duration = "3d"      # then each gpurota run has to say its --timeout

[watch]
unused = "stop"        # after unused_after and unused_grace
unused_after = "2h"
foreign_use = "notify"
)",
                            "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->limits.everyone.hours, 600);
  EXPECT_EQ(config->watch.unused, WatchAction::kStop);
}

TEST(Config, TakesTheDriversWithWhichLeasesCanBeParked) {
  EXPECT_EQ(parse("[park]\ndrivers = [\"610\", \"615\"]\n", "f")->park.drivers,
            (std::vector<std::string>{"610", "615"}));
  EXPECT_FALSE(parse("[park]\ndrivers = \"610\"\n", "f"));
}

TEST(Config, TakesTheSectionOfAutomaticLeases) {
  const auto config = parse(R"(
privacy = "open"
[automatic]
enabled = true
users = ["alice", "1001", "@students"]
memory = "8G"
soft_limit = "50%"
gpus = 2
when_full = "unmanaged"
)",
                            "f");
  ASSERT_TRUE(config) << config.error().message;
  const Automatic& automatic = config->automatic;
  EXPECT_TRUE(automatic.enabled);
  EXPECT_EQ(automatic.users, (std::vector<std::string>{"alice", "1001", "@students"}));
  EXPECT_EQ(automatic.memory, (SizeSpec{gib(8), 0}));
  EXPECT_EQ(automatic.soft_limit, (SizeSpec{Bytes(), 50}));
  EXPECT_EQ(automatic.gpus, 2);
  EXPECT_EQ(automatic.when_full, Automatic::WhenFull::kUnmanaged);
}

TEST(Config, ReadsUsersOfDeviceFiles) {
  const auto config =
      parse("[access]\nstrict = true\nusers = [\"gdm\", \"117\"]\ngroups = [\"video\"]", "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->access, (Access{true, {"gdm", "117"}, {"video"}}));
  EXPECT_EQ(Config().access, (Access{false, {}, {}}));
}

TEST(Config, ReadsUsersOfTheWebPage) {
  const auto config = parse(
      "[web]\nsign_in = false\nuser = \"www\"\nidle = \"5m\"\nlongest = \"2h\"\naccept_proxy_users "
      "= true",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  using std::chrono::hours, std::chrono::minutes;
  EXPECT_EQ(config->web, (Web{false, "www", minutes(5), hours(2), true}));
  EXPECT_EQ(Config().web, (Web{true, "gpurota-web", hours(1), hours(12), false}));
}

TEST(Config, TakesThePoliciesOfSoftAndLoweredLimits) {
  const auto config = parse(R"(
[soft_limit]
policy = "throttle"
throttle_delay = "200ms"
grace = "10s"
tell_owner = false
[lowered_limit]
policy = "stop"
grace = "5s"
)",
                            "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->soft_limit.policy, SoftLimit::Policy::kThrottle);
  EXPECT_EQ(config->soft_limit.throttle_delay.count(), 200);
  EXPECT_EQ(config->soft_limit.grace.count(), 10000);
  EXPECT_FALSE(config->soft_limit.tell_owner);
  EXPECT_EQ(config->lowered_limit.policy, LoweredLimit::Policy::kStop);
  EXPECT_EQ(config->lowered_limit.grace.count(), 5000);
  EXPECT_EQ(parse("[soft_limit]\npolicy = \"evict\"", "f")->soft_limit.policy,
            SoftLimit::Policy::kEvict);
  EXPECT_THAT(error_of("[soft_limit]\npolicy = \"evict\"\n[automatic]\nsoft_limit = \"1G\""),
              HasSubstr("cannot be moved"));
  EXPECT_THAT(error_of("[soft_limit]\npolicy = \"kill\""), HasSubstr("\"warn\", \"throttle\""));
  EXPECT_THAT(error_of("[soft_limit]\nthrottle_delay = \"3s\""), HasSubstr("at most 2s"));
  EXPECT_THAT(error_of("[lowered_limit]\npolicy = \"evict\""), HasSubstr("\"keep\" or"));
}

TEST(Config, ErrorsInASectionNameItsKey) {
  EXPECT_EQ(error_of("[automatic]\nenable = true"),
            "gpurota.toml:2: automatic.enable: no such setting; did you mean automatic.enabled?");
  EXPECT_THAT(error_of("[automatic]\nmemory = 8"),
              HasSubstr("automatic.memory: 8 is not a size: write a size"));
  EXPECT_THAT(error_of("[automatic]\nusers = \"alice\""),
              HasSubstr("automatic.users: 'alice' is not a list: write names"));
  EXPECT_THAT(error_of("[automatic]\nwhen_full = \"wait\""), HasSubstr("\"refuse\" or"));
  EXPECT_THAT(error_of("automatic = true"), HasSubstr("true is not a section: write [automatic]"));
  EXPECT_THAT(error_of("[automatic]\nenabled = true"),
              HasSubstr("automatic.memory: it is missing"));
  EXPECT_THAT(error_of("[other]\na = 1"), HasSubstr("other: no such section"));
}

TEST(Config, LimitsAreForEveryoneAGroupOrAUser) {
  const auto config = parse(R"(
admin_group = "gpurota-admin"
hours_window = "30d"
[limits]
gpus = 2
memory = "40G"
duration = "12h"
[limits.group.students]
gpus = 1
waiting = 4
weight = 10
interactive = false
compute = "50%"
[limits.user.alice]
gpus = "unlimited"
hours = 500
priority = 10
bookings = 20
book_ahead = "unlimited"
pinned = "64G"
)",
                            "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->admin_group, "gpurota-admin");
  EXPECT_EQ(config->hours_window, std::chrono::hours(720));
  EXPECT_EQ(config->limits.everyone.gpus, 2);
  EXPECT_EQ(config->limits.everyone.memory, gib(40));
  EXPECT_EQ(config->limits.everyone.duration, std::chrono::hours(12));
  EXPECT_EQ(config->limits.everyone.hours, std::nullopt);
  EXPECT_EQ(config->limits.groups.at("students").waiting, 4);
  EXPECT_EQ(config->limits.groups.at("students").weight, 10);
  EXPECT_EQ(config->limits.groups.at("students").interactive, false);
  EXPECT_EQ(config->limits.everyone.interactive, std::nullopt);
  EXPECT_EQ(config->limits.groups.at("students").compute, 50);
  EXPECT_EQ(config->limits.everyone.compute, std::nullopt);
  EXPECT_EQ(config->limits.users.at("alice").gpus, UserLimits::kUnlimited);
  EXPECT_EQ(config->limits.users.at("alice").priority, 10);
  EXPECT_EQ(config->limits.users.at("alice").pinned, gib(64));
  EXPECT_EQ(config->limits.users.at("alice").bookings, 20);
  EXPECT_EQ(config->limits.users.at("alice").book_ahead, UserLimits::kUnlimitedTime);
}

TEST(Config, WrongLimitIsReportedWithItsLineAndUser) {
  EXPECT_THAT(error_of("[limits]\ngpu = 1"),
              HasSubstr("gpurota.toml:2: limits.gpu: no such setting; did you mean limits.gpus?"));
  EXPECT_THAT(error_of("[limits.user.alice]\n\ngpus = -1"),
              HasSubstr("gpurota.toml:3: limits.user.alice.gpus: -1 is out of range: write a whole "
                        "number from 0 to 1000000, or \"unlimited\""));
  for (const char* const wrong : {"\"96%\"", "50", "\"half\""}) {
    EXPECT_THAT(error_of(std::string("[limits]\ncompute = ") + wrong),
                HasSubstr("limits.compute: write a part of a GPU's compute time from"));
  }
  EXPECT_THAT(error_of("[limits]\ninteractive = \"yes\""),
              HasSubstr("limits.interactive: 'yes' is not a switch: write true or false"));
  EXPECT_THAT(
      error_of("[limits.group.a]\nduration = \"ever\""),
      HasSubstr("limits.group.a.duration: 'ever' is not a time: write a time up to a year"));
  EXPECT_THAT(error_of("[limits.group.a]\nnew = 1"), HasSubstr("limits.group.a.new: no such"));
  EXPECT_THAT(error_of("[limits.user]\nalice = 3"),
              HasSubstr("limits.user.alice: 3 is not a section"));
  EXPECT_THAT(error_of("limits = 3"), HasSubstr("limits: 3 is not a section"));
  EXPECT_THAT(error_of("[limits]\nduration = \"0s\""), HasSubstr("unlimited"));
  EXPECT_THAT(error_of("[limits]\nduration = \"nand\""), HasSubstr("unlimited"));
  EXPECT_THAT(error_of("[limits]\nweight = 0"), HasSubstr("from 1 to"));
}

TEST(Config, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error_of("\n\nwatch_period = \"soon\""),
              HasSubstr("gpurota.toml:3: watch_period: 'soon' is not a time: write a time"));
  EXPECT_THAT(
      error_of("wach_period = \"1s\""),
      HasSubstr("gpurota.toml:1: wach_period: no such setting; did you mean watch_period?"));
  EXPECT_THAT(error_of("group = \"a\"\nprivacy = "), HasSubstr("gpurota.toml:2"));
  EXPECT_THAT(error_of("privacy = \"secret\""), HasSubstr("write \"owner\" or \"open\""));
  EXPECT_THAT(error_of("max_leases_per_user = 0"), HasSubstr("from 1 to"));
  EXPECT_THAT(error_of("max_leases_per_user = \"3\""), HasSubstr("whole number"));
  EXPECT_THAT(error_of("watch_period = \"1ms\""), HasSubstr("at least 10 ms"));
  EXPECT_THAT(error_of("watch_period = \"-1s\""), HasSubstr("write a time"));
  EXPECT_THAT(error_of("watch_period = \"nans\""), HasSubstr("write a time"));
  EXPECT_THAT(error_of("unreserved_threshold = -1"), HasSubstr("size"));
  EXPECT_THAT(error_of("grace = 5"), HasSubstr("write a time"));
  EXPECT_THAT(error_of("[group]\na = 1"),
              HasSubstr("group: a section is not text: write a string"));
}

TEST(Config, ForeignTextInAnErrorCannotReachTheTerminal) {
  EXPECT_THAT(error_of("\"\\u001b[31m\" = 1"), testing::Not(HasSubstr("\x1b")));
}

TEST(Config, ReadsActionsOfTheWatch) {
  const auto config = parse(R"(
audit_size_per_user = "1M"
history_days = 30
[watch]
unreserved_use = "notify"
not_limited = "report"
stop_grace = "3s"
[[watch.rule]]
finding = "not_limited"
users = ["alice"]
action = "notify"
[[watch.rule]]
finding = "foreign_use"
groups = ["students"]
action = "stop"
[[watch.ignore]]
uid = 0
executable = "/usr/bin/Xorg"
)",
                            "gpurota.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->watch.unreserved_use, WatchAction::kNotify);
  EXPECT_EQ(config->watch.foreign_use, WatchAction::kReport);
  EXPECT_EQ(config->watch.not_limited, WatchAction::kReport);
  EXPECT_EQ(Config().watch.not_limited, WatchAction::kStop) << "a limit that does not hold";
  EXPECT_EQ(config->watch.rules.at(0).finding, "not_limited");
  EXPECT_EQ(config->watch.rules.at(1).groups.at(0), "students");
  EXPECT_EQ(config->watch.rules.at(1).action, WatchAction::kStop);
  EXPECT_EQ(config->watch.ignore.at(0).uid, 0u);
  EXPECT_EQ(config->audit_size_per_user, mib(1));
}

TEST(Config, SizeMayBeZero) {
  const auto config = parse("unreserved_threshold = \"0\"\naudit_size_per_user = 0", "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->unreserved_threshold, Bytes());
  EXPECT_EQ(config->audit_size_per_user, Bytes());
}

TEST(Config, TurnsAreSetForAllGpusAndForEach) {
  const auto config = parse(
      "[turns]\nquantum = \"auto\"\nmode = \"on\"\ncapacity = \"90%\"\nhost_budget = \"64G\"\n"
      "stop_at_deadline = true\nlongest_drain = \"1h\"\nclean_blocks = "
      "false\n[turns.gpu.0]\ncapacity = \"24G\"\nquantum = "
      "\"5s\"\n"
      "[turns.gpu.\"GPU-12\"]\nmode = \"off\"",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->turns.every.mode, Turns::Mode::kOn);
  EXPECT_EQ(config->turns.every.quantum, std::chrono::milliseconds(0));
  EXPECT_EQ(config->turns.every.capacity->percent, 90);
  EXPECT_EQ(config->turns.host_budget.bytes, gib(64));
  EXPECT_TRUE(config->turns.stop_at_deadline);
  EXPECT_EQ(config->turns.longest_drain, std::chrono::hours(1));
  EXPECT_FALSE(config->turns.clean_blocks);
  EXPECT_EQ(config->turns.gpus.at("0").capacity->bytes, gib(24));
  EXPECT_EQ(config->turns.gpus.at("0").quantum, std::chrono::seconds(5));
  EXPECT_EQ(config->turns.gpus.at("GPU-12").mode, Turns::Mode::kOff);
  EXPECT_THAT(error_of("[turns]\nquantum = \"1us\""), HasSubstr("turns.quantum"));
  EXPECT_THAT(error_of("[turns]\nmode = \"maybe\""), HasSubstr("auto"));
  EXPECT_THAT(error_of("[turns.gpu.0]\nsize = \"1G\""), HasSubstr("turns.gpu.0.size"));
  EXPECT_THAT(error_of("[turns]\npriority_percent = 100"), HasSubstr("0 to 95"));
}

TEST(Config, NamesTheKeyInsideATableThatIsWrong) {
  EXPECT_THAT(error_of("[watch]\nforeign = \"stop\""), HasSubstr("watch.foreign: no such"));
  EXPECT_THAT(error_of("[watch]\nunused = \"kill\""), HasSubstr("gpurota.toml:2: watch.unused"));
  EXPECT_THAT(error_of("[watched]\nunused = \"stop\""), HasSubstr("watched: no such section"));
  EXPECT_THAT(error_of("watch = 3"), HasSubstr("watch: 3 is not a section"));
  EXPECT_THAT(error_of("[watch]\nnot_limited = \"kill\""), HasSubstr("watch.not_limited"));
  EXPECT_THAT(error_of("[[watch.rule]]\nfinding = \"none\""), HasSubstr("or not_limited"));
  EXPECT_THAT(error_of("[[watch.rule]]\nusers = [\"a\"]"),
              HasSubstr("watch.rule[1].action: it is missing"));
  EXPECT_THAT(error_of("[[watch.rule]]\naction = \"stop\""), HasSubstr("users or groups"));
  EXPECT_THAT(error_of("[[watch.ignore]]\nexecutable = \"Xorg\""), HasSubstr("absolute"));
  EXPECT_THAT(error_of("[[watch.ignore]]"), HasSubstr("uid, executable"));
}

TEST(Config, TakesFairShareWithWeights) {
  EXPECT_FALSE(Config{}.fair_share.enabled);
  const auto config = parse(
      "[fair_share]\nenabled = true\nhalf_life = \"14d\"\nlongest_wait = \"12h\"\n"
      "[fair_share.group.staff]\nweight = 2\n[fair_share.user.alice]\nweight = 3\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->fair_share.enabled);
  EXPECT_EQ(config->fair_share.half_life, std::chrono::hours(14 * 24));
  EXPECT_EQ(config->fair_share.longest_wait, std::chrono::hours(12));
  EXPECT_EQ(config->fair_share.groups.at("staff").weight, 2);
  EXPECT_EQ(config->fair_share.users.at("alice").weight, 3);
}

TEST(Config, ReadsLimitsOfBookings) {
  const Bookings usual;
  EXPECT_EQ(usual.open_ended, Bookings::OpenEnded::kUntilBooking);
  EXPECT_EQ(usual.longest, std::chrono::hours(72));
  EXPECT_EQ(default_limits().book_ahead, std::chrono::hours(28 * 24))
      << "--weekly 3 needs three weeks";
  const auto config = parse(
      "longest_wait = \"2d\"\n[bookings]\nopen_ended = \"wait\"\nmin_unbooked = \"2h\"\n"
      "no_show = \"0s\"\nlongest = \"7d\"\nuser_share = 100\nall_share = 80\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->longest_wait, std::chrono::hours(48));
  EXPECT_EQ(config->bookings.open_ended, Bookings::OpenEnded::kWait);
  EXPECT_EQ(config->bookings.min_unbooked, std::chrono::hours(2));
  EXPECT_EQ(config->bookings.no_show, std::chrono::seconds(0));
  EXPECT_EQ(config->bookings.longest, std::chrono::hours(7 * 24));
  EXPECT_EQ(config->bookings.user_share_percent, 100);
  EXPECT_EQ(config->bookings.all_share_percent, 80);
}

TEST(Config, InvalidWordInBookingsIsReported) {
  EXPECT_THAT(error_of("[bookings]\nopen_ended = \"until\""),
              HasSubstr("'until' is not known here: write \"until-booking\" or \"wait\""));
  EXPECT_THAT(error_of("[bookings]\nuser_share = 0"), HasSubstr("from 1 to 100"));
  EXPECT_THAT(error_of("[bookings]\nno_show = \"0.5s\""), HasSubstr("write a time up to a year"));
  EXPECT_THAT(error_of("[fair_share]\nhalf_life = \"0s\""), HasSubstr("write a time up to a year"))
      << "zero is a value only where the site can mean it";
}

TEST(Config, TakesClassesOfGpus) {
  const auto config = parse(
      "[gpu.class.big]\ntype = \"h100\"\nmin_memory = \"40G\"\nmin_cc = \"8.0\"\n"
      "[gpu.class.desk]\ngpus = [0, \"GPU-12\"]\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->gpu_classes.at("big"), (GpuClass{"h100", gib(40), "8.0", {}}));
  EXPECT_EQ(config->gpu_classes.at("desk"), (GpuClass{{}, {}, {}, {"0", "GPU-12"}}));
}

TEST(Config, ReadsTheBaselineOfOneGpu) {
  const auto config = parse(
      "[gpu.0]\nunlisted = \"2G\"\n[gpu.GPU-12]\nunlisted = \"0\"\n[gpu.class.big]\nmin_cc = "
      "\"8.0\"\n",
      "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->gpus, (GpuRules{{"0", {gib(2)}}, {"GPU-12", {Bytes()}}}));
  EXPECT_EQ(config->gpu_classes.size(), 1u);
}

TEST(Config, ShowsTheBaselineOfOneGpu) {
  Config config;
  config.gpus["0"].unlisted = gib(2);
  const auto shown = shown_settings(config);
  const auto found = std::find_if(shown.begin(), shown.end(), [](const ShownSetting& each) {
    return each.key == "gpu.0.unlisted";
  });
  ASSERT_NE(found, shown.end());
  EXPECT_EQ(found->value, "2G");
}

TEST(Config, ReadsTheReserveOfUnifiedMemory) {
  EXPECT_EQ(parse("interactive_percent = 50\n", "f")->interactive_percent, 50);
  EXPECT_THAT(error_of("interactive_percent = 96"), HasSubstr("0 to 95"));
  EXPECT_EQ(parse("", "f")->unified_reserve, (SizeSpec{Bytes(), 10}));
  EXPECT_EQ(parse("unified_reserve = \"12G\"\n", "f")->unified_reserve, (SizeSpec{gib(12), 0}));
}

}  // namespace
}  // namespace gpurota::config
