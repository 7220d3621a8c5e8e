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

TEST(JoinedJson, WhatHidesTextStaysEscaped) {
  const std::string joined = joined_json({{"note", R"({"text": "\u202e\u001b[31m"})", "text"}});
  EXPECT_EQ(joined, "{\n  \"note\": \"\\u202E\\u001b[31m\"\n}\n");
}

TEST(JoinedJson, AFieldThatIsNotThereIsNull) {
  EXPECT_EQ(joined_json({{"a", "{}", "b"}}), "{\n  \"a\": null\n}\n");
}

}  // namespace
}  // namespace gpurota::proto
