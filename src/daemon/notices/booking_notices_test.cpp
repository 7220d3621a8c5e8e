#include "daemon/notices/booking_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

const GpuUuid kFirst{"GPU-a"};

class BookingNoticesTest : public ::testing::Test, public NoticeListener {
 protected:
  BookingNoticesTest() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    booking.id = RequestId{7};
    booking.asked.uid = 1000;
    booking.asked.lasts = 2h;
    booking.begins = now + 30min;
    booking.kept = {kFirst};
  }
  ~BookingNoticesTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  static GpuTable table() {
    GpuInfo info;
    info.uuid = kFirst;
    return GpuTable({info});
  }
  void on_notice(const Notice& notice) override { heard = notice; }
  std::string told(BookingStep step, const std::string& why = "", std::optional<Author> by = {}) {
    heard.reset();
    notices.on_booking({.step = step, .booking = booking, .lease = nullptr, .why = why, .by = by});
    return heard ? heard->text : "";
  }

  const WallTime now{std::chrono::seconds(1795437000)};  // Monday, 23 November 2026, 12:30
  GpuTable gpus = table();
  BookingEntry booking;
  BookingNotices notices{{gpus, *this, [this] { return now; }}};
  std::optional<Notice> heard;
};

TEST_F(BookingNoticesTest, TheUserIsToldWhenABookingBeginsAndWhyItCannot) {
  EXPECT_EQ(told(BookingStep::kMade), "");
  EXPECT_EQ(told(BookingStep::kSoon), "") << "booking_warnings.h";
  EXPECT_EQ(told(BookingStep::kMoved, "GPU 1 is draining"),
            "your booking R7 has GPU 0 now, as GPU 1 is draining; it begins at 13:00");
  EXPECT_EQ(heard->kind, NoticeKind::kBeginsSoon);
  EXPECT_EQ(heard->to, 1000U);
  EXPECT_EQ(told(BookingStep::kTrouble, "GPU 0 is draining"),
            "your booking R7 of GPU 0, at 13:00, cannot begin: GPU 0 is draining; it begins when "
            "that is over");
  EXPECT_EQ(heard->kind, NoticeKind::kCannotBegin);
  EXPECT_EQ(told(BookingStep::kMissed, "gpurotad did not run then"),
            "your booking R7 is over and has never begun: gpurotad did not run then");
}

TEST_F(BookingNoticesTest, TheUserIsToldOnlyOfCancellationsByOthers) {
  EXPECT_EQ(told(BookingStep::kCancelled, "it was cancelled by alice", Author{1000, ""}), "");
  EXPECT_EQ(told(BookingStep::kCancelled, "it was cancelled by root", Author{0, "maintenance"}),
            "your booking R7 of GPU 0, at 13:00, was cancelled: it was cancelled by root");
  EXPECT_EQ(heard->kind, NoticeKind::kRequestCancelled);
  EXPECT_EQ(heard->reason, "maintenance");
  EXPECT_EQ(heard->by, 0U);
}

}  // namespace
}  // namespace gpurota::daemon
