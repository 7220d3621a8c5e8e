#include "cli/text/done_text.h"

#include "cli/queue/waiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1000;
constexpr uid_t kRoot = 0;

proto::Lease a_lease() {
  proto::Lease lease;
  lease.lease_id = {10};
  lease.kind = proto::LeaseKind::kReservation;
  lease.state = proto::LeaseState::kActive;
  lease.uid = kAlice;
  lease.user = "alice";
  proto::LeaseGpu gpu;
  gpu.label = "0";
  gpu.uuid = {"GPU-a"};
  lease.gpus = {gpu};
  return lease;
}

TEST(DoneText, ALeaseIsKnownByItsNoteOrItsCommand) {
  proto::Lease lease = a_lease();
  EXPECT_EQ(recognizable(lease, kAlice), "L10 (GPU 0)");
  lease.command = {"python", "train me.py"};
  EXPECT_EQ(recognizable(lease, kAlice), "L10 (GPU 0, python 'train me.py')");
  lease.note = "for the demo";
  EXPECT_EQ(recognizable(lease, kAlice), "L10 (GPU 0, \"for the demo\")");
  lease.note = "\x1b[31m";
  EXPECT_EQ(recognizable(lease, kAlice).find('\x1b'), std::string::npos);
}

TEST(DoneText, LeaseOfAnotherUserShowsItsOwner) {
  EXPECT_EQ(recognizable(a_lease(), kRoot), "L10 of alice (GPU 0)");
}

TEST(DoneText, ShowsTheGrantAndTheTimeWaited) {
  proto::Lease lease = a_lease();
  lease.gpus.push_back(lease.gpus.front());
  lease.gpus.back().label = "1";
  EXPECT_EQ(got_text(lease, 45s), "got GPU 0,1 as L10 after 45 s");
  EXPECT_EQ(got_text(lease, std::nullopt), "got GPU 0,1 as L10");
}

TEST(DoneText, ShowsTheLeaseAfterAnUpdate) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  proto::Lease lease = a_lease();
  lease.gpus.front().limit_bytes = gib(8);
  lease.ends = WallTime(18h);
  lease.note = "demo";
  lease.priority = -10;
  EXPECT_EQ(updated_text(lease, WallTime(12h)),
            "updated L10 on GPU 0 (8 GiB), until 18:00, priority -10, \"demo\"");
}

TEST(DoneText, LimitBelowTheHeldMemoryIsReportedWithTheWayBack) {
  proto::Lease before = a_lease(), now = a_lease();
  before.gpus.front().limit_bytes = gib(2);
  now.gpus.front().limit_bytes = gib(1);
  now.gpus.front().used_bytes = gib(1);
  EXPECT_EQ(held_beyond_text(now, before), "");
  now.gpus.front().used_bytes = mib(1740);
  EXPECT_EQ(
      held_beyond_text(now, before),
      "L10 holds 1.7 GiB of GPU 0, more than its new limit of 1 GiB. What it holds stays until "
      "it is freed, and new allocations are refused; to go back: gpurota update L10 --memory "
      "2G");
  before.gpus.front().limit_bytes = mib(1900);
  EXPECT_TRUE(held_beyond_text(now, before).ends_with("--memory 1900M"));
  // The lease held too much before, too.
  before = now;
  EXPECT_EQ(held_beyond_text(now, before).find("to go back"), std::string::npos);
  now.gpus.front().limit_bytes.reset();
  EXPECT_EQ(held_beyond_text(now, before), "") << "a whole GPU";
}

TEST(DoneText, ShowsTheChangedSetting) {
  SetOptions options;
  options.gpu_ids = {"0", "1"};
  options.capacity = SizeSpec{gib(24), 0};
  options.turns = "off";
  EXPECT_EQ(set_text(options), "set GPU 0,1: capacity 24 GiB, turns off");
  SetOptions reset;
  reset.gpu_ids = {"3"};
  reset.reset = true;
  EXPECT_EQ(set_text(reset), "set GPU 3: back to the configuration");
}

TEST(DoneText, EveryActionHasAPastTense) {
  EXPECT_EQ(controlled_text("job", "stop", "web"), "stopped job web");
  EXPECT_EQ(controlled_text("filler", "pause", "fold"), "paused filler fold");
}

TEST(OwnReservation, IsNamedIfTheRequestMayWaitForIt) {
  proto::Request request;
  request.uid = kAlice;
  const std::vector<proto::Lease> leases = {a_lease()};
  EXPECT_EQ(own_reservation_text(request, leases),
            "You hold L10 on GPU 0: gpurota run --lease L10 -- …");
  request.gpu_ids = std::vector<GpuUuid>{{"GPU-b"}};
  EXPECT_EQ(own_reservation_text(request, leases), "");
  request.gpu_ids = std::vector<GpuUuid>{{"GPU-a"}};
  EXPECT_NE(own_reservation_text(request, leases), "");
  request.gpu_ids.reset();
  request.planned = {1};
  EXPECT_EQ(own_reservation_text(request, leases), "");
}

TEST(OwnReservation, IgnoresOtherUsersAndEndingReservations) {
  proto::Request request;
  request.uid = kAlice;
  proto::Lease other = a_lease(), shared = a_lease(), ending = a_lease();
  other.uid = kRoot;
  shared.as_name = "carol";
  ending.state = proto::LeaseState::kEnding;
  EXPECT_EQ(own_reservation_text(request, {other, shared, ending}), "");
}

}  // namespace
}  // namespace gpurota::cli
