#include "core/end_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace gpurota {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(EndWarning, IsSigusr1UnlessAnotherSignalIsNamed) {
  EXPECT_EQ(*make_end_warning(600, std::nullopt), (EndWarning{600s, SIGUSR1}));
  EXPECT_EQ(*make_end_warning(60, "SIGTERM"), (EndWarning{60s, SIGTERM}));
  EXPECT_EQ(*make_end_warning(60, "WINCH"), (EndWarning{60s, SIGWINCH}));
  EXPECT_EQ(warning_signal_name(SIGUSR2), "USR2");
  EXPECT_EQ(warning_signal_name(SIGKILL), "");
}

TEST(EndWarning, ZeroSecondsMeanNoWarning) { EXPECT_FALSE(make_end_warning(0, "USR1")->is_set()); }

TEST(EndWarning, InvalidValueIsRefusedWithAValidExample) {
  EXPECT_TRUE(make_end_warning(24 * 3600, std::nullopt));
  EXPECT_THAT(make_end_warning(24 * 3600 + 1, std::nullopt).error().message,
              HasSubstr("at most 24 h before"));
  EXPECT_FALSE(make_end_warning(-1, std::nullopt));
  for (const char* word : {"KILL", "9", "", "usr1", "STOP"}) {
    EXPECT_FALSE(make_end_warning(60, word)) << word;
  }
  EXPECT_THAT(make_end_warning(60, "KILL").error().message, HasSubstr("write HUP, INT, USR1"));
}

}  // namespace
}  // namespace gpurota
