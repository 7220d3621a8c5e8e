#include "proto/error.h"

#include "proto/codec.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

// Over the wire and back.
WireError travelled(const WireError& error) {
  const auto answer = parse_reply<Status>(error_json(error));
  EXPECT_FALSE(answer.has_value());
  return answer ? WireError{} : answer.error();
}

TEST(WireError, CarriesCodeAndMessageToTheClient) {
  for (const Code code : {Code::kInvalid, Code::kNotFound, Code::kDenied, Code::kNoGpu,
                          Code::kLimit, Code::kUnavailable, Code::kIo}) {
    const Error back = to_error(travelled(wire_error(Error{code, 0, "why, and what to do"})));
    EXPECT_EQ(back.code, code) << to_string(code);
    EXPECT_EQ(back.message, "why, and what to do");
  }
}

TEST(WireError, CodesWithoutANameOfTheirOwnArriveAsTheNearestOne) {
  EXPECT_EQ(wire_error(Error{Code::kGone, 0, "x"}).name, kNotFound);
  EXPECT_EQ(wire_error(Error{Code::kTimeout, 0, "x"}).name, kFailed);
  EXPECT_EQ(wire_error(Error{Code::kInternal, 0, "x"}).name, kFailed);
}

TEST(WireError, NoGpuBringsItsCounts) {
  const WireError back = travelled(no_gpu_error("no GPU is free", 1, 8));
  EXPECT_EQ(back.free, 1);
  EXPECT_EQ(back.total, 8);
  EXPECT_EQ(to_error(back).code, Code::kNoGpu);
}

TEST(WireError, NoGpuHasTheReasonToWait) {
  const Reason reason{.code = ReasonCode::kFreeUntil,
                      .text = "GPU 3 is free until {time}, then bob's booking R16 begins",
                      .time = WallTime(std::chrono::hours(100)),
                      .remedy = "starts now with --timeout 40m"};
  EXPECT_EQ(travelled(no_gpu_error("no GPU is free", 1, 8, reason)).wait_reason, reason);
  EXPECT_FALSE(travelled(no_gpu_error("no GPU is free", 1, 8)).wait_reason);
}

TEST(WireError, StandardErrorsNameTheirSubject) {
  for (const std::string_view name :
       {kInterfaceNotFound, kMethodNotFound, kMethodNotImplemented, kInvalidParameter}) {
    const WireError sent{.name = std::string(name), .message = {}, .subject = "a.b.C"};
    EXPECT_EQ(travelled(sent), sent);
    EXPECT_NE(to_error(sent).message.find("a.b.C"), std::string::npos) << name;
  }
  EXPECT_EQ(to_error(invalid_parameter("note")).code, Code::kInvalid);
}

TEST(WireError, AnErrorOfANewerDaemonStillSaysSomething) {
  const auto answer = parse_reply<Status>(R"({"error":"dev.gpurota.Whatever"})");
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(to_error(answer.error()).message.find("dev.gpurota.Whatever"), std::string::npos);
}

TEST(WireError, ErrorWithWrongTypesIsReadAsFarAsPossible) {
  const auto answer =
      parse_reply<Status>(R"({"error":"dev.gpurota.NoGpu","parameters":)"
                          R"({"message":7,"free":"x","total":3,"wait_reason":{"code":1}}})");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().name, kNoGpu);
  EXPECT_EQ(answer.error().free, 0);
  EXPECT_EQ(answer.error().total, 3);
  EXPECT_FALSE(answer.error().wait_reason);
}

}  // namespace
}  // namespace gpurota::proto
