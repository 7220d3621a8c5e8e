// What `gpurota turns` says of the last switches.
#include "cli/turns_text.h"

#include <gmock/gmock.h>

namespace gpurota::cli {
namespace {

using ::testing::HasSubstr;

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
