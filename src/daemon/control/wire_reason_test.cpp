#include "daemon/control/wire_reason.h"

#include "proto/words.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

TEST(WireReason, CodesAndProtocolWordsMatchOneToOne) {
  const auto words = proto::Words<proto::ReasonCode>::kAll.size();
  ASSERT_EQ(static_cast<std::size_t>(ReasonCode::kResting) + 2, words) << "[0] is unknown";
  for (std::size_t i = 0; i + 1 < words; ++i) {
    const auto code = static_cast<ReasonCode>(i);
    EXPECT_EQ(to_string(wire_reason({code, "why"}).code), std::string(to_string(code)));
    EXPECT_NE(wire_reason({code, "why"}).code, proto::ReasonCode::kUnknown) << to_string(code);
  }
}

TEST(WireReason, RefusalEndsWithTheRemedy) {
  const Reason reason{.code = ReasonCode::kKept,
                      .text = "GPU 1 is kept for R1 of bob, which came first",
                      .remedy = "starts now with --timeout 40m"};
  const proto::WireError error = no_gpu_error("GPU 1 is kept", 0, 2, reason);
  EXPECT_EQ(error.message, "GPU 1 is kept; starts now with --timeout 40m");
  EXPECT_EQ(error.wait_reason, wire_reason(reason));
  EXPECT_EQ(no_gpu_error("GPU 1 is kept", 0, 2, {}).message, "GPU 1 is kept");
}

}  // namespace
}  // namespace gpurota::daemon
