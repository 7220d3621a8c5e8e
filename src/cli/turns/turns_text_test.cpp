// Tests of the text of `gpurota turns` about the last switches.
#include "cli/turns/turns_text.h"

#include <gmock/gmock.h>

namespace gpurota::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string text_of(Bytes clean) {
  proto::TurnSwitch last;
  last.from = LeaseId{1};
  last.to = LeaseId{2};
  last.in_bytes = gib(4);
  last.out_bytes = gib(20);
  last.clean_bytes = clean;
  last.microseconds = 61000;
  proto::TurnGpu gpu;
  gpu.switches.push_back(last);
  proto::ListTurns::Reply reply;
  reply.gpus.push_back(gpu);
  return turns_text(reply, {}, {});
}

TEST(TurnsText, SaysHowMuchDidNotHaveToBeCopied) {
  EXPECT_THAT(text_of(gib(19)),
              HasSubstr("4 GiB in, 20 GiB out (19 GiB of it not copied), 61.0 ms"));
  EXPECT_THAT(text_of({}), HasSubstr("20 GiB out, 61.0 ms"));
}

TEST(TurnsText, SpeedAndPinnedShareAreShownForEachLease) {
  proto::TurnGpu gpu;
  proto::TurnLease lease;
  lease.lease_id = {2};
  EXPECT_EQ(speed_text(gpu, lease), "");
  lease.may_move_bytes = gib(21);
  lease.pinned_bytes = gib(15);
  EXPECT_EQ(speed_text(gpu, lease), "15 GiB of the 21 GiB that may have to move are pinned");
  lease.pinned_bytes = gib(40);
  EXPECT_EQ(speed_text(gpu, lease), "21 GiB of the 21 GiB that may have to move are pinned");
  for (const auto& [to, moved] : {std::pair{2, gib(20)}, {2, mib(10)}, {1, gib(40)}}) {
    proto::TurnSwitch& each = gpu.switches.emplace_back();
    each.to = {static_cast<std::uint64_t>(to)};
    each.in_bytes = each.out_bytes = moved;
    each.microseconds = 500000;
  }
  EXPECT_THAT(speed_text(gpu, lease), EndsWith("; last switch 80.0 GiB/s")) << "the last large one";
  lease.may_move_bytes.reset();
  EXPECT_EQ(speed_text(gpu, lease), "last switch 80.0 GiB/s");
  gpu.leases.push_back(lease);
  proto::ListTurns::Reply reply;
  reply.gpus.push_back(gpu);
  EXPECT_THAT(turns_text(reply, {}, {}), HasSubstr("  L2: last switch 80.0 GiB/s\n"));
}

TEST(TurnsText, GpusWithoutASwapLeaseShareALine) {
  proto::ListTurns::Reply reply;
  for (int i = 0; i < 8; ++i) {
    proto::TurnGpu& gpu = reply.gpus.emplace_back();
    gpu.index = i;
    gpu.mode = "auto";
    gpu.capacity_bytes = gib(8);
  }
  EXPECT_THAT(turns_text(reply, {}, {}), StartsWith("GPU 0-7: no swap lease; 0 B of 8 GiB held\n"));
  // A GPU that is set differently, or has leases, has a line of its own.
  reply.gpus[2].mode = "off";
  reply.gpus[5].leases.emplace_back();
  const std::string text = turns_text(reply, {}, {});
  EXPECT_THAT(text, StartsWith("GPU 0, 1: no swap lease; 0 B of 8 GiB held\nGPU 2: no swap lease; "
                               "0 B of 8 GiB held; turns off\nGPU 3, 4: no swap lease"));
  EXPECT_THAT(text, HasSubstr("\nGPU 5: everything fits"));
  EXPECT_THAT(text, HasSubstr("\nGPU 6, 7: no swap lease"));
}

TEST(TurnsText, ALeaseWithoutWorkIsIdle) {
  proto::ListTurns::Reply reply;
  proto::TurnLease& lease = reply.gpus.emplace_back().leases.emplace_back();
  lease.phase = "waiting";
  lease.waits_for = "nothing";
  EXPECT_THAT(turns_text(reply, {}, {}), HasSubstr("idle"));
  lease.waits_for = "its turn";
  const std::string waits = turns_text(reply, {}, {});
  EXPECT_THAT(waits, HasSubstr("waiting"));
  EXPECT_THAT(waits, ::testing::Not(HasSubstr("idle")));
}

}  // namespace
}  // namespace gpurota::cli
