#include "proto/documents.h"

#include <gtest/gtest.h>

namespace gpurota::proto {
namespace {

TEST(JoinedJson, PutsPartsUnderTheirNamesInOrder) {
  EXPECT_EQ(joined_json({{"version", "\"1.0\""},
                         {"daemon", ""},
                         {"turns", R"({"gpus": [1], "other": 2})", "gpus"}}),
            "{\n  \"version\": \"1.0\",\n  \"daemon\": null,\n  \"turns\": [\n    1\n  ]\n}\n");
}

TEST(JoinedJson, CharactersThatHideTextStayEscaped) {
  const std::string joined = joined_json({{"note", R"({"text": "\u202e\u001b[31m"})", "text"}});
  EXPECT_EQ(joined, "{\n  \"note\": \"\\u202E\\u001b[31m\"\n}\n");
}

TEST(JoinedJson, AFieldThatIsNotThereIsNull) {
  EXPECT_EQ(joined_json({{"a", "{}", "b"}}), "{\n  \"a\": null\n}\n");
}

TEST(Documents, AreListedUnderAName) {
  EXPECT_EQ(listed_json("hosts", {"{\"b\": 1, \"a\": \"\\u001b\"}", "no JSON", "[]"}),
            "{\n  \"hosts\": [\n    {\n      \"b\": 1,\n      \"a\": \"\\u001b\"\n    },\n    "
            "null,\n    []\n  ]\n}\n");
  EXPECT_EQ(listed_json("hosts", {}), "{\n  \"hosts\": []\n}\n");
}

TEST(Documents, ATextIsAString) {
  EXPECT_EQ(text_json("a \"b\"\n\\"), "\"a \\\"b\\\"\\n\\\\\"");
  EXPECT_EQ(text_json("\xff"), "\"\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace gpurota::proto
