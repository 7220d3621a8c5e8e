#include "client/reason_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota::client {
namespace {

using namespace std::chrono_literals;

const WallTime kNow{1795437000s};  // Monday, 23 November 2026, 12:30 UTC

class ReasonText : public ::testing::Test {
 protected:
  ReasonText() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    request_.reason = "as an older daemon says it";
    request_.wait_reason = {.code = proto::ReasonCode::kFreeUntil,
                            .text = "GPU 3 is free until {time}, then bob's booking R16 begins",
                            .time = kNow + 24h};
  }
  ~ReasonText() override {
    ::unsetenv("TZ");
    ::tzset();
  }

  proto::Request request_;
};

TEST_F(ReasonText, IsTheDaemonsSentenceWithTheTimeOfTheReader) {
  EXPECT_EQ(reason_text(request_, kNow),
            "GPU 3 is free until Tue 12:30, then bob's booking R16 begins");
  EXPECT_EQ(reason_with_remedy(request_, kNow), reason_text(request_, kNow));
  request_.wait_reason->remedy = "starts now with --timeout 40m";
  EXPECT_EQ(reason_with_remedy(request_, kNow),
            "GPU 3 is free until Tue 12:30, then bob's booking R16 begins; starts now with "
            "--timeout 40m");
}

TEST_F(ReasonText, TextOfAnOlderDaemonIsKept) {
  request_.wait_reason.reset();
  EXPECT_EQ(reason_with_remedy(request_, kNow), "as an older daemon says it");
  proto::Job job;
  EXPECT_EQ(reason_text(job, kNow), "");
  job.detail = "0 of 2 GPUs free";
  EXPECT_EQ(reason_with_remedy(job, kNow), "0 of 2 GPUs free");
}

TEST_F(ReasonText, IsSafeToPrint) {
  request_.wait_reason->text = "GPU 1 is draining: \x1b[31m";
  request_.wait_reason->remedy = "\x1b[0m";
  EXPECT_EQ(reason_with_remedy(request_, kNow).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace gpurota::client
