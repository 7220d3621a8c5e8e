#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

using testing::StartsWith;

namespace gpurota {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Code::kInvalid, "odd", 7);
  return n / 2;
}

Result<int> quarter(int n) {
  GPUROTA_ASSIGN_OR_RETURN(const int first, half(n));
  GPUROTA_ASSIGN_OR_RETURN(const int second, half(first));
  return second;
}

Result<void> check_even(int n) {
  GPUROTA_TRY(half(n));
  return {};
}

Result<std::unique_ptr<int>> boxed(int n) {
  auto made = std::make_unique<int>(n);
  return made;
}

TEST(Result, PassesValuesThroughTheMacros) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_TRUE(check_even(2));
}

TEST(Result, ReturnsTheFirstErrorUnchanged) {
  const auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kInvalid);
  EXPECT_EQ(failed.error().native, 7);
  EXPECT_EQ(failed.error().message, "odd");
  EXPECT_FALSE(check_even(3));
}

TEST(Result, MovesValuesThatCannotBeCopied) {
  const auto moved = []() -> Result<int> {
    GPUROTA_ASSIGN_OR_RETURN(const std::unique_ptr<int> box, boxed(5));
    return *box;
  }();
  EXPECT_EQ(*moved, 5);
}

TEST(Error, ContextGoesInFrontAndKeepsCodeAndErrno) {
  Error error{Code::kDenied, EACCES, "not yours"};
  const Error outer = std::move(error).context("while reading it").context("while starting");
  EXPECT_EQ(outer.message, "while starting: while reading it: not yours");
  EXPECT_EQ(outer.code, Code::kDenied);
  EXPECT_EQ(outer.native, EACCES);
}

TEST(Error, ErrnoChoosesTheCodeAndTheWords) {
  const Error missing = fail_errno("cannot open /x", ENOENT).value();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_EQ(missing.native, ENOENT);
  EXPECT_THAT(missing.message, StartsWith("cannot open /x: No such file"));
  EXPECT_EQ(fail_errno("x", EACCES).value().code, Code::kDenied);
  EXPECT_EQ(fail_errno("x", EPERM).value().code, Code::kDenied);
  EXPECT_EQ(fail_errno("x", EIO).value().code, Code::kIo);
}

TEST(Error, CodesHaveStableNames) {
  const std::pair<Code, const char*> names[] = {
      {Code::kInvalid, "invalid"}, {Code::kNotFound, "not_found"},
      {Code::kDenied, "denied"},   {Code::kNoGpu, "no_gpu"},
      {Code::kLimit, "limit"},     {Code::kGone, "gone"},
      {Code::kTimeout, "timeout"}, {Code::kUnavailable, "unavailable"},
      {Code::kIo, "io"},           {Code::kInternal, "internal"}};
  for (const auto& [code, name] : names) EXPECT_STREQ(to_string(code), name);
}

}  // namespace
}  // namespace gpurota
