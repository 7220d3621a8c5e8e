#include "proto/codec.h"

#include <gtest/gtest.h>

#include <string>

namespace gpurota::proto {
namespace {

TEST(CallBySession, CarriesItsToken) {
  EXPECT_EQ(parse_call(call_json(Status{}, false, "3.secret"))->session, "3.secret");
  EXPECT_EQ(parse_call(call_json(Status{}))->session, "");
  for (const char* session : {"1", "true", "[]", "{\"a\":1}"}) {
    const auto got =
        parse_call(R"({"method":"dev.gpurota.Status","session":)" + std::string(session) + "}");
    ASSERT_FALSE(got) << session;
    EXPECT_EQ(got.error().error.subject, "session");
  }
  EXPECT_FALSE(parse_call(call_json(Status{}, false, std::string(kMaxSessionBytes + 1, 'a'))));
}

}  // namespace
}  // namespace gpurota::proto
