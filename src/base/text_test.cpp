#include "base/text.h"

#include <gtest/gtest.h>

namespace gpurota {
namespace {

TEST(DisplayText, LeavesOrdinaryTextOfAnyScriptAlone) {
  for (const char* text : {"", "train.py --lr 1e-3", "Grüße, мир, 世界", "😀", "~`!@#$%^&*()"}) {
    EXPECT_EQ(display_text(text), text);
  }
}

TEST(DisplayText, ReplacesControlCharacters) {
  EXPECT_EQ(display_text("a\nb\tc\rd"), "a\uFFFDb\uFFFDc\uFFFDd");
  EXPECT_EQ(display_text("\x1b[31mred"), "\uFFFD[31mred");
  EXPECT_EQ(display_text("\x07\x7f"), "\uFFFD\uFFFD");
  EXPECT_EQ(display_text(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(display_text("\u009b31m"), "\uFFFD31m");  // C1: one-character escape of xterm
}

TEST(DisplayText, ReplacesWhatReordersOrHidesText) {
  for (const char* hidden :
       {"\u202a", "\u202b", "\u202c",     "\u202d",     "\u202e", "\u2066", "\u2067",
        "\u2068", "\u2069", "\u200e",     "\u200f",     "\u061c", "\u200b", "\u200c",
        "\u200d", "\u2060", "\ufeff",     "\u00ad",     "\u2028", "\u2029", "\u115f",
        "\u3164", "\ufff9", "\U000e0041", "\U0010ffff", "\ufdd0"}) {
    EXPECT_EQ(display_text(hidden), "\uFFFD");
  }
}

TEST(DisplayText, ReplacesEachInvalidByte) {
  EXPECT_EQ(display_text("a\xff\xfe"), "a\uFFFD\uFFFD");
  EXPECT_EQ(display_text("\xe4\xb8"), "\uFFFD\uFFFD");            // cut short
  EXPECT_EQ(display_text("\xc0\xaf"), "\uFFFD\uFFFD");            // overlong '/'
  EXPECT_EQ(display_text("\xe0\x80\xaf"), "\uFFFD\uFFFD\uFFFD");  // overlong
  EXPECT_EQ(display_text("\xf0\x80\x80\xaf"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(display_text("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // surrogate
  EXPECT_EQ(display_text("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(display_text("\x80x"), "\uFFFDx");
  EXPECT_EQ(display_text("\xe4x\xb8"), "\uFFFDx\uFFFD");
}

TEST(DisplayText, CutsWithAnEllipsisAtWholeCharacters) {
  EXPECT_EQ(display_text("abcdef", 6), "abcdef");
  EXPECT_EQ(display_text("abcdefg", 6), "abcde…");
  EXPECT_EQ(display_text("世界世界", 3), "世界…");
  EXPECT_EQ(display_text("\xff\xff\xff", 2), "\uFFFD…");
  EXPECT_EQ(display_text("ab", 1), "…");
  EXPECT_EQ(display_text("ab", 0), "");
}

TEST(DisplayText, ApplyingItTwiceChangesNothing) {
  const std::string once = display_text("x\x1b\xff\u202e\n世");
  EXPECT_EQ(display_text(once), once);
}

TEST(ValidUtf8, KeepsControlCharactersAndReplacesInvalidBytes) {
  EXPECT_EQ(valid_utf8("a\nb\x1b\u202e世"), "a\nb\x1b\u202e世");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b\xe4\xb8"),
            "a\uFFFDb\uFFFD\uFFFD");
}

TEST(DisplayWidth, CountsColumnsOfATerminal) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("Grüße"), 5u);
  EXPECT_EQ(display_width("世界"), 4u);
  EXPECT_EQ(display_width("한글"), 4u);
  EXPECT_EQ(display_width("ｶﾅ"), 2u);    // half-width
  EXPECT_EQ(display_width("ＡＢ"), 4u);  // full-width
  EXPECT_EQ(display_width("😀"), 2u);
  EXPECT_EQ(display_width("e\u0301"), 1u);  // combining acute
  EXPECT_EQ(display_width("\uFFFD…"), 2u);
  EXPECT_EQ(display_width("\xff"), 1u);
}

TEST(DisplayCommand, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(display_command({"python", "train.py", "--lr=1e-3"}), "python train.py --lr=1e-3");
  EXPECT_EQ(display_command({"echo", "two words", ""}), "echo 'two words' ''");
  EXPECT_EQ(display_command({"echo", "it's"}), R"(echo 'it'\''s')");
  EXPECT_EQ(display_command({"echo", "$HOME", "*", "~", "a;b", "#x"}),
            "echo '$HOME' '*' '~' 'a;b' '#x'");
  EXPECT_EQ(display_command({"A=1", "B=2"}), "'A=1' B=2");
  EXPECT_EQ(display_command({"./世界"}), "./世界");
  EXPECT_EQ(display_command({}), "");
}

TEST(DisplayCommand, IsSafeAndBounded) {
  EXPECT_EQ(display_command({"x\x1b[2J\xff"}), "'x\uFFFD[2J\uFFFD'");
  const std::string cut = display_command({"x", std::string(1000000, 'y'), "z"}, 20);
  EXPECT_EQ(cut, "x yyyyyyyyyyyyyyyyy…");
}

}  // namespace
}  // namespace gpurota
