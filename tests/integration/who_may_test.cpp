// Rights of users, through the control socket: limits, administrators, reloads.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

using ::testing::HasSubstr;

TEST(WhoMay, ARequestBeyondTheAllowanceIsRefusedWithLimitHeldAndAsked) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(10);
  RunningDaemon daemon(config);
  const auto first = daemon.keep_slice(gib(8));
  const auto refused = daemon.call(proto::Acquire{{.memory = SizeSpec{gib(4), 0}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message,
              HasSubstr("allows you 10 GiB of GPU memory; you have 8 GiB and ask for 4 GiB"));
  EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u);
}

TEST(WhoMay, UpdateCannotExceedTheUsersLimits) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(10);
  config.limits.everyone.duration = std::chrono::hours(2);
  config.limits.everyone.hours = 1;
  RunningDaemon daemon(config);
  proto::Acquire reservation;
  reservation.request.kind = "reservation";
  reservation.request.seconds = 600;
  reservation.request.memory = SizeSpec{gib(8), 0};
  const auto made = daemon.call(reservation);
  ASSERT_TRUE(made) << made.error().message;
  const auto refusal = [&](std::optional<SizeSpec> memory, std::optional<std::int64_t> seconds) {
    proto::Update update;
    update.lease_id = made->lease.lease_id;
    update.memory = memory;
    update.seconds = seconds;
    const auto updated = daemon.call(update);
    return updated ? "" : updated.error().message;
  };
  EXPECT_THAT(refusal(SizeSpec{gib(12), 0}, {}),
              HasSubstr("allows you 10 GiB of GPU memory; you have 8 GiB and ask for 4 GiB"));
  EXPECT_THAT(refusal({}, 3 * 3600), HasSubstr("leases of 2 h at most, "));
  // A third of a GPU for less than two hours is less than one GPU hour.
  EXPECT_EQ(refusal({}, 7000), "");
  EXPECT_EQ(refusal(SizeSpec{gib(9), 0}, 600), "") << "less is always possible";
}

TEST(WhoMay, ExpectedUseOfALeaseCountsAgainstTheHours) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.hours = 1;
  RunningDaemon daemon(config);
  proto::Acquire reservation;
  reservation.request.kind = "reservation";
  reservation.request.memory = SizeSpec{gib(12), 0};
  reservation.request.seconds = 6000;
  ASSERT_TRUE(daemon.call(reservation)) << "half a GPU is half an hour in one";
  const auto second = daemon.call(reservation);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("1 GPU hour in"));
  EXPECT_THAT(second.error().message, HasSubstr("will use 0.8 and ask for 0.8"));
}

TEST(WhoMay, ReloadAppliesToLaterRequests) {
  RunningDaemon daemon;
  const auto first = daemon.keep_slice(gib(8));
  daemon.set_config_text("[limits]\nmemory = \"8G\"\n");
  ASSERT_TRUE(daemon.call(proto::Reload{}));
  EXPECT_TRUE(eventually([&] {
    const auto again = daemon.call(proto::Acquire{{.memory = SizeSpec{gib(1), 0}}});
    return !again && again.error().code == Code::kLimit;
  }));
  EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u) << "what there is stays";
}

TEST(WhoMay, BadFileIsRefusedAsAWholeAndTheOldConfigurationStays) {
  config::Config config = RunningDaemon::quick();
  config.limits.everyone.memory = gib(4);
  RunningDaemon daemon(config);
  daemon.set_config_text("privacy = \"open\"\n[limits]\nmemory = \"100G\"\ngpus = -3\n");
  const auto reloaded = daemon.call(proto::Reload{});
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, Code::kInvalid);
  EXPECT_THAT(reloaded.error().message, HasSubstr(":4: limits.gpus: "));
  EXPECT_EQ(daemon.call(proto::Acquire{{.memory = SizeSpec{gib(5), 0}}}).error().code,
            Code::kLimit);
}

}  // namespace
}  // namespace gpurota::testing
