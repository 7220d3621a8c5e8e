#include "base/escape.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

std::string utf8(char32_t code) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F))};
  if (code < 0x10000) {
    return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
  }
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)),
          byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
}

TEST(EscapeHidden, LeavesWhatATerminalMaySeeAlone) {
  const std::string text = "{\n\t\"note\": \"caf\u00e9 \u4e16\u754c \U0001F680\"\n}\n";
  EXPECT_EQ(escape_hidden(text, Escapes::kJson), text);
  EXPECT_EQ(escape_hidden("", Escapes::kJson), "");
}

TEST(EscapeHidden, EveryControlCharacterBecomesItsEscape) {
  for (char32_t code = 0; code < 0xA0; ++code) {
    const bool stays = (code >= 0x20 && code < 0x7F) || code == '\n' || code == '\t';
    const std::string got = escape_hidden("a" + utf8(code) + "z", Escapes::kToml);
    EXPECT_EQ(got.size(), stays ? 3u : 8u) << static_cast<unsigned>(code);
  }
  EXPECT_EQ(escape_hidden("\u009b2J", Escapes::kJson), "\\u009B2J");
  EXPECT_EQ(escape_hidden("\x1b[31m\x7f", Escapes::kJson), "\\u001B[31m\\u007F");
}

TEST(EscapeHidden, CharactersThatReorderOrHideTextAreEscaped) {
  for (const char32_t code :
       {0x061Cu, 0x200Bu, 0x200Eu, 0x200Fu, 0x2028u, 0x202Au, 0x202Bu, 0x202Cu, 0x202Du, 0x202Eu,
        0x2060u, 0x2066u, 0x2067u, 0x2068u, 0x2069u, 0xFEFFu}) {
    const std::string got = escape_hidden(utf8(code), Escapes::kJson);
    ASSERT_EQ(got.size(), 6u) << got;
    EXPECT_EQ(std::stoul(got.substr(2), nullptr, 16), code);
  }
}

TEST(EscapeHidden, JsonAndTomlDifferBeyondTheFirstPlane) {
  EXPECT_EQ(escape_hidden("\U000E0041", Escapes::kJson), "\\uDB40\\uDC41");
  EXPECT_EQ(escape_hidden("\U000E0041", Escapes::kToml), "\\U000E0041");
}

TEST(EscapeHidden, InvalidBytesAreReplaced) {
  EXPECT_EQ(escape_hidden("a\x9b\xff", Escapes::kJson), "a\uFFFD\uFFFD");
}

// escape_hidden and display_text use the same table.
TEST(EscapeHidden, LeavesNothingThatDisplayTextReplaces) {
  for (char32_t code = 0x20; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string got = escape_hidden(utf8(code), Escapes::kJson);
    ASSERT_EQ(display_text(got), got) << static_cast<unsigned>(code);
  }
}

}  // namespace
}  // namespace gpurota
