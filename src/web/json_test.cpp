#include "web/json.h"

#include <gtest/gtest.h>

namespace gpurota::web {
namespace {

TEST(Json, EscapesWhatForeignTextMayHold) {
  EXPECT_EQ(json_text("a\"b\\c").text, "\"a\\\"b\\\\c\"");
  EXPECT_EQ(json_text("<script>&").text, "\"\\u003cscript\\u003e\\u0026\"");
  EXPECT_EQ(json_text("two\nlines\x1b[31m\xff").text.find('\n'), std::string::npos);
  EXPECT_EQ(json_text("two\nlines\x1b[31m\xff").text.find('\x1b'), std::string::npos);
  EXPECT_EQ(json_text("ü").text, "\"ü\"");
}

TEST(Json, AnObjectHasItsFieldsInTheirOrder) {
  const Json json = JsonObject()
                        .add("text", "a")
                        .add("number", -3)
                        .add("amount", gib(1))
                        .add("flag", true)
                        .add("nothing", std::optional<int>())
                        .add("list", json_array(std::vector{1, 2}, [](int each) { return each; }))
                        .take();
  EXPECT_EQ(json.text,
            "{\"text\":\"a\",\"number\":-3,\"amount\":1073741824,\"flag\":true,\"nothing\":null,"
            "\"list\":[1,2]}");
  EXPECT_EQ(JsonObject().take().text, "{}");
}

}  // namespace
}  // namespace gpurota::web
