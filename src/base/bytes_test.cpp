#include "base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::HasSubstr;

namespace gpurota {
namespace {

constexpr std::uint64_t kK = 1024;

struct Spelling {
  const char* text;
  std::uint64_t bytes;
};

class ParseBytes : public testing::TestWithParam<Spelling> {};

TEST_P(ParseBytes, AcceptsEverySpelling) {
  const auto parsed = parse_bytes(GetParam().text);
  ASSERT_TRUE(parsed) << GetParam().text << ": " << parsed.error().message;
  EXPECT_EQ(parsed->count(), GetParam().bytes) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ParseBytes,
    testing::Values(
        Spelling{"1", 1}, Spelling{"4096", 4096}, Spelling{"400B", 400}, Spelling{"400 b", 400},
        Spelling{"1k", kK}, Spelling{"1K", kK}, Spelling{"1kb", kK}, Spelling{"1KB", kK},
        Spelling{"1KiB", kK}, Spelling{"1kib", kK}, Spelling{"1Ki", kK}, Spelling{"7M", 7 * kK* kK},
        Spelling{"7mb", 7 * kK* kK}, Spelling{"7MiB", 7 * kK* kK}, Spelling{"8g", 8 * kK* kK* kK},
        Spelling{"8G", 8 * kK* kK* kK}, Spelling{"8GB", 8 * kK* kK* kK},
        Spelling{"8GiB", 8 * kK* kK* kK}, Spelling{"8gIb", 8 * kK* kK* kK},
        Spelling{"2T", 2 * kK* kK* kK* kK}, Spelling{"2TB", 2 * kK* kK* kK* kK},
        Spelling{"2TiB", 2 * kK* kK* kK* kK}, Spelling{"1.5G", 1536 * kK* kK},
        Spelling{"1.5GiB", 1536 * kK* kK}, Spelling{"1.5 GiB", 1536 * kK* kK},
        Spelling{"0.5k", 512}, Spelling{"0.25M", 256 * kK}, Spelling{"08G", 8 * kK* kK* kK},
        Spelling{"0.1k", 102}, Spelling{"1.00000000000000000000000001k", kK},
        Spelling{"9223372036854775807", INT64_MAX}, Spelling{"8388607T", 8388607 * kK* kK* kK* kK},
        Spelling{"8388607.5T", 8388607 * kK* kK* kK* kK + 512 * kK* kK* kK}));

struct Mistake {
  const char* text;
  const char* why;
};

class ParseBytesRefuses : public testing::TestWithParam<Mistake> {};

TEST_P(ParseBytesRefuses, SaysWhyAndWhatToWrite) {
  const auto parsed = parse_bytes(GetParam().text);
  ASSERT_FALSE(parsed) << GetParam().text;
  EXPECT_EQ(parsed.error().code, Code::kInvalid);
  EXPECT_THAT(parsed.error().message, HasSubstr(GetParam().why));
  EXPECT_THAT(parsed.error().message, HasSubstr("8G"));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ParseBytesRefuses,
    testing::Values(Mistake{"", "empty"}, Mistake{"0", "less than one byte"},
                    Mistake{"0G", "less than one byte"}, Mistake{"0.0001k", "less than one byte"},
                    Mistake{"-1", "negative"}, Mistake{"-8G", "negative"},
                    Mistake{"+8G", "start with a number"}, Mistake{"eight", "start with a number"},
                    Mistake{"G", "start with a number"}, Mistake{".5G", "start with a number"},
                    Mistake{" 8G", "start with a number"}, Mistake{"8G ", "unit"},
                    Mistake{"8 ", "unit"}, Mistake{"8  G", "unit"}, Mistake{"8X", "unit"},
                    Mistake{"8GG", "unit"}, Mistake{"8GBB", "unit"}, Mistake{"8giga", "unit"},
                    Mistake{"8P", "unit"}, Mistake{"0x10", "unit"}, Mistake{"1e9", "unit"},
                    Mistake{"1,5G", "unit"}, Mistake{"8G\n", "unit"}, Mistake{"1.5.5G", "unit"},
                    Mistake{"88%", "unit"}, Mistake{"1.G", "after the point"},
                    Mistake{"1.5", "needs a unit"}, Mistake{"9223372036854775808", "too large"},
                    Mistake{"8388608T", "too large"},
                    Mistake{"8388607.99999999999999999999T9", "unit"},
                    Mistake{"99999999999999999999", "too large"},
                    Mistake{"340282366920938463463374607431768211457", "too large"},
                    Mistake{"18446744073709551617K", "too large"}));

TEST(ParseBytesRefusal, ShowsForeignTextHarmless) {
  const auto parsed = parse_bytes("\x1b[31m8\xff");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message.find('\x1b'), std::string::npos);
  EXPECT_EQ(parsed.error().message.find('\xff'), std::string::npos);
}

TEST(SizeSpec, TakesAbsoluteAmountsAsTheyAre) {
  const auto spec = parse_size_spec("8g");
  ASSERT_TRUE(spec);
  EXPECT_EQ(*spec, (SizeSpec{gib(8), 0}));
  EXPECT_EQ(spec->of(gib(80)), gib(8));
}

TEST(SizeSpec, ResolvesAShareOfTheGpuDownToAMebibyte) {
  const auto spec = parse_size_spec("88%");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->percent, 88);
  EXPECT_EQ(spec->of(gib(80)), mib(72089));  // 72089.6
  EXPECT_EQ(parse_size_spec("100%")->of(gib(80)), gib(80));
  EXPECT_EQ(parse_size_spec("1%")->of(mib(50)), Bytes(0));
  EXPECT_EQ(parse_size_spec("100%")->of(Bytes(UINT64_MAX)).count(), ~(kMiB.count() - 1));
}

TEST(SizeSpec, RefusesInvalidPercentages) {
  for (const char* text : {"0%", "101%", "-5%", "88.5%", "%", "8G%", "1 %",
                           "99999999999999999999999999999999999999999%", "%88"}) {
    const auto spec = parse_size_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Code::kInvalid) << text;
    EXPECT_THAT(spec.error().message, HasSubstr("50%")) << text;
  }
}

TEST(Bytes, ArithmeticSaturatesInsteadOfWrapping) {
  EXPECT_EQ(Bytes(3) - Bytes(5), Bytes(0));
  EXPECT_EQ(Bytes(UINT64_MAX) + Bytes(1), Bytes(UINT64_MAX));
  EXPECT_EQ(Bytes(UINT64_MAX) + Bytes(UINT64_MAX), Bytes(UINT64_MAX));
  Bytes amount = mib(1);
  amount += kKiB;
  amount -= kMiB;
  EXPECT_EQ(amount, kKiB);
  amount -= kGiB;
  EXPECT_TRUE(amount.is_zero());
}

TEST(Bytes, ComparesByAmount) {
  EXPECT_LT(mib(1023), kGiB);
  EXPECT_EQ(mib(1024), kGiB);
}

TEST(Bytes, PrintsTheShortestUnitWithAtMostOneDecimal) {
  EXPECT_EQ(to_string(Bytes(0)), "0 B");
  EXPECT_EQ(to_string(Bytes(400)), "400 B");
  EXPECT_EQ(to_string(Bytes(1023)), "1023 B");
  EXPECT_EQ(to_string(kKiB), "1 KiB");
  EXPECT_EQ(to_string(mib(518)), "518 MiB");
  EXPECT_EQ(to_string(gib(8)), "8 GiB");
  EXPECT_EQ(to_string(mib(1536)), "1.5 GiB");
  EXPECT_EQ(to_string(gib(80) - mib(41)), "80 GiB");
  EXPECT_EQ(to_string(gib(80) - mib(100)), "79.9 GiB");
  EXPECT_EQ(to_string(gib(2048)), "2 TiB");
  EXPECT_EQ(to_string(Bytes(UINT64_MAX)), "16 EiB");
}

TEST(Bytes, NeverPrints1024OfAUnitThatHasALargerOne) {
  EXPECT_EQ(to_string(kGiB - Bytes(1)), "1 GiB");
  EXPECT_EQ(to_string(kMiB - Bytes(1)), "1 MiB");
}

TEST(Bytes, DifferentAmountsPrintDifferently) {
  EXPECT_EQ(to_string(gib(2) + mib(40), gib(2)), "2.04 GiB");
  EXPECT_EQ(to_string(gib(2), gib(2) + mib(40)), "2 GiB");
  EXPECT_EQ(to_string(gib(2) + kMiB, gib(2)), "2.001 GiB");
  EXPECT_EQ(to_string(gib(2) + Bytes(1), gib(2)), "2.000000001 GiB");
  EXPECT_EQ(to_string(gib(80) - mib(41), gib(80)), "79.96 GiB");
  EXPECT_EQ(to_string(gib(5), gib(4)), "5 GiB");
  EXPECT_EQ(to_string(gib(2), gib(2)), "2 GiB");
  EXPECT_EQ(to_string(kGiB - Bytes(1), mib(1023)), "1 GiB");
}

TEST(Bytes, TableTextHasNoUnit) {
  EXPECT_EQ(gib_text(Bytes(), gib(8)), "0");
  EXPECT_EQ(gib_text(mib(512), gib(8)), "0.5");
  EXPECT_EQ(gib_text(mib(20), gib(8)), "0.02");
  EXPECT_EQ(gib_text(Bytes(1), gib(8)), "0.001");
  EXPECT_EQ(gib_text(gib(8), gib(8)), "8");
  EXPECT_EQ(gib_text(gib(8) + mib(10), gib(8)), "8.01");
  EXPECT_EQ(gib_text(gib(2048), gib(8)), "2048");
}

TEST(Bytes, ReadsBackWhatItPrints) {
  for (const Bytes amount : {Bytes(1), Bytes(400), kKiB, mib(518), mib(1536), gib(8), gib(3072)}) {
    const auto again = parse_bytes(to_string(amount));
    ASSERT_TRUE(again) << to_string(amount);
    EXPECT_EQ(*again, amount);
  }
}

}  // namespace
}  // namespace gpurota
