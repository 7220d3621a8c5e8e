#include "cli/queue/calendar_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace gpurota::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Monday, 23 November 2026, 12:30 UTC.
const WallTime kMonday{std::chrono::seconds(1795437000)};

class CalendarText : public ::testing::Test {
 protected:
  CalendarText() {
    ::setenv("TZ", "UTC0", 1);
    ::tzset();
    proto::Booking booking;
    booking.request_id = RequestId{7};
    booking.user = "alice";
    booking.made = kMonday;
    booking.begins = kMonday + 20h + 30min;
    booking.ends = booking.begins + 32h;
    booking.labels = {"0", "1"};
    booking.note = "course; GPUs, and C++";
    reply.bookings = {booking};
    proto::Lease& lease = reply.leases.emplace_back();
    lease.lease_id = LeaseId{3};
    lease.user = "bob";
    lease.kind = proto::LeaseKind::kRun;
    lease.since = kMonday - 30h;
    lease.gpus = {{.index = 2, .label = "2"}};
  }
  ~CalendarText() override {
    ::unsetenv("TZ");
    ::tzset();
  }
  proto::Status::Reply reply;
};

TEST_F(CalendarText, HasARowForEachDayOfBookingsAndCurrentLeases) {
  EXPECT_EQ(calendar_text(reply, 4, {}, kMonday),
            "DAY         TIME         GPU  USER   ID  WHAT\n"
            "Mon 23 Nov  now-         2    bob    L3  no time limit\n"
            "Tue 24 Nov  09:00-24:00  0,1  alice  R7  course; GPUs, and C++\n"
            "Wed 25 Nov  00:00-17:00  0,1  alice  R7  course; GPUs, and C++\n"
            "Thu 26 Nov  -\n");
  EXPECT_THAT(calendar_text(reply, 1, {}, kMonday), HasSubstr("1 more later: gpurota calendar"));
}

TEST_F(CalendarText, ICalendarHasBookingsAndReservationsEscapedAndFolded) {
  reply.leases[0].kind = proto::LeaseKind::kReservation;
  reply.leases[0].ends = kMonday + 2h;
  reply.leases[0].note = std::string(80, 'x') + "\u00e4\u00e4\nend";
  const std::string text = calendar_ical(reply, "lab1", kMonday);
  EXPECT_TRUE(text.starts_with("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"));
  EXPECT_TRUE(text.ends_with("END:VCALENDAR\r\n"));
  EXPECT_THAT(text, HasSubstr("UID:R7@lab1\r\n"));
  EXPECT_THAT(text, HasSubstr("DTSTART:20261124T090000Z\r\nDTEND:20261125T170000Z\r\n"));
  EXPECT_THAT(text, HasSubstr("SUMMARY:GPU 0\\,1: alice\r\n"));
  EXPECT_THAT(text, HasSubstr("DESCRIPTION:course\\; GPUs\\, and C++\r\n"));
  EXPECT_THAT(text, HasSubstr("UID:L3@lab1\r\n"));
  std::size_t begin = 0;
  for (std::size_t end = text.find("\r\n"); end != std::string::npos;
       end = text.find("\r\n", begin)) {
    EXPECT_LE(end - begin, 75U);
    const std::string line = text.substr(begin, end - begin);
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    begin = end + 2;
  }
}

TEST_F(CalendarText, ABookingIsALine) {
  EXPECT_EQ(booked_text(*reply.bookings, kMonday),
            "booked R7: GPU 0,1 from Tue 09:00 to Wed 17:00; to cancel it: gpurota cancel R7");
  (*reply.bookings)[0].memory = SizeSpec{gib(8), 0};
  EXPECT_THAT(booking_line((*reply.bookings)[0], kMonday), HasSubstr("GPU 0,1 (8 GiB of each)"));
  (*reply.bookings)[0].latency = proto::LatencyClass::kInteractive;
  EXPECT_THAT(booking_line((*reply.bookings)[0], kMonday),
              HasSubstr("GPU 0,1 (8 GiB of each, interactive)"));
  (*reply.bookings)[0].trouble = "as an older program shows it";
  (*reply.bookings)[0].wait_reason = {.text = "GPU 0 is draining"};
  EXPECT_THAT(explain_booking((*reply.bookings)[0], kMonday),
              HasSubstr("it cannot begin: GPU 0 is draining"));
}

}  // namespace
}  // namespace gpurota::cli
