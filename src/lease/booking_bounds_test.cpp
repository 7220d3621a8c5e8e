#include "lease/booking_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gpurota::lease {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr uid_t kBob = 1001, kEve = 1002;
constexpr auto kDay = 24h;
const WallTime kNow = WallTime(1000h * 24);

BookingBounds of_gpus(double gpus) { return {72h, 25, 50, gpus}; }

BookedTime had(WallTime::duration in, std::chrono::hours lasts, double gpus = 1, uid_t uid = kBob) {
  return {uid, kNow + in, kNow + in + lasts, gpus};
}

std::string refusal(const BookingBounds& bounds, const std::vector<BookedTime>& booked,
                    const std::vector<WallTime::duration>& in, std::chrono::hours lasts,
                    double gpus = 1) {
  BookingsAsked asked{kBob, "bob", {}, lasts, gpus};
  for (const auto each : in) asked.begins.push_back(kNow + each);
  const auto checked = check_booking_bounds(bounds, booked, asked, kNow);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, Code::kLimit);
  return checked.error().message;
}

TEST(BookingBounds, OneBookingHasALongestDuration) {
  EXPECT_EQ(refusal(of_gpus(8), {}, {2 * kDay}, 72h), "");
  EXPECT_THAT(refusal(of_gpus(8), {}, {2 * kDay}, 73h),
              HasSubstr("bookings of 3 days at most, 73 h were asked for"));
  BookingBounds none = of_gpus(8);
  none.longest = 0s;
  EXPECT_EQ(refusal(none, {}, {2 * kDay}, 300h), "");
}

TEST(BookingBounds, AUserHasAQuarterOfTheGpuHoursOfAWeekWhateverTheMachine) {
  EXPECT_EQ(refusal(of_gpus(1), {}, {kDay}, 42h), "") << "one GPU: 42 of 168 hours";
  EXPECT_THAT(refusal(of_gpus(1), {}, {kDay}, 43h),
              HasSubstr("bob has booked 0 of 42 GPU hours of the 7 days from "));
  EXPECT_EQ(refusal(of_gpus(8), {}, {kDay}, 42h, 8), "");
  EXPECT_THAT(refusal(of_gpus(8), {}, {kDay}, 43h, 8), HasSubstr("of 336 GPU hours"));
  EXPECT_EQ(refusal(of_gpus(1), {}, {kDay}, 72h, 0.5), "") << "half a GPU for 72 hours";
}

TEST(BookingBounds, ARefusalSaysWhatIsLeftAndWhatToDo) {
  const auto told = refusal(of_gpus(1), {had(kDay, 40h)}, {4 * kDay}, 8h);
  EXPECT_THAT(told, HasSubstr("bob has booked 40 of 42 GPU hours of the 7 days from "));
  EXPECT_THAT(told, HasSubstr("and 8 more are asked for: book 2 GPU hours at most, cancel a "
                              "booking, or ask your administrator"));
  EXPECT_THAT(refusal(of_gpus(1), {had(kDay, 42h)}, {4 * kDay}, 8h),
              HasSubstr("book another week"));
}

TEST(BookingBounds, AnyWeekCountsIncludingOneThatHasBegun) {
  const std::vector<BookedTime> yesterday = {had(-44h, 42h)};
  EXPECT_THAT(refusal(of_gpus(1), yesterday, {kDay}, 1h), HasSubstr("booked 42 of 42"));
  EXPECT_EQ(refusal(of_gpus(1), yesterday, {168h - 2h}, 42h), "") << "the next week";
  // Two halves that lie in different calendar weeks.
  EXPECT_THAT(refusal(of_gpus(1), {had(3 * kDay, 21h)}, {9 * kDay}, 22h), HasSubstr("21 of 42"));
  EXPECT_EQ(refusal(of_gpus(1), {had(3 * kDay, 21h)}, {11 * kDay}, 42h), "");
}

TEST(BookingBounds, SeveralAtOnceAreCountedTogether) {
  EXPECT_EQ(refusal(of_gpus(1), {}, {kDay, 8 * kDay, 15 * kDay}, 42h), "") << "weekly";
  EXPECT_NE(refusal(of_gpus(1), {}, {kDay, 3 * kDay}, 22h), "");
}

TEST(BookingBounds, AllUsersTogetherMayBookHalf) {
  const std::vector<BookedTime> eves = {had(kDay, 42h, 1, kEve)};
  EXPECT_EQ(refusal(of_gpus(1), eves, {3 * kDay}, 42h), "");
  std::vector<BookedTime> more = eves;
  more.push_back(had(5 * kDay, 20h, 1, 1003));
  const auto told = refusal(of_gpus(1), more, {3 * kDay}, 42h);
  EXPECT_THAT(told, HasSubstr("all users together have booked 62 of 84 GPU hours"));
  EXPECT_THAT(told, HasSubstr("book 22 GPU hours at most"));
  BookingBounds no_bound = of_gpus(1);
  no_bound.all_percent = 100;
  EXPECT_EQ(refusal(no_bound, more, {3 * kDay}, 42h), "");
  no_bound.user_percent = 100;
  EXPECT_EQ(refusal(no_bound, more, {3 * kDay}, 72h), "");
}

TEST(BookingBounds, TheFullestWindowThatIsNotOverIsShown) {
  EXPECT_EQ(fullest_window({}, kNow), 0s);
  EXPECT_EQ(fullest_window({had(-200h, 30h)}, kNow), 0s) << "over for more than a week";
  EXPECT_EQ(fullest_window({had(-48h, 30h), had(kDay, 4h, 0.5)}, kNow), 32h);
  EXPECT_EQ(most_booked(of_gpus(1), 25), 42h);
}

// Checks windows of seven days that begin on a coarse grid of times.
TEST(BookingBounds, NoWindowEverHoldsMoreThanIsAllowed) {
  std::mt19937 random(7);
  const BookingBounds bounds = of_gpus(2);
  std::vector<BookedTime> booked;
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const auto uid = static_cast<uid_t>(kBob + random() % 3);
    BookingsAsked asked{uid, "u", {kNow + 1h * (random() % 600)}, 1h * (1 + random() % 60), 0};
    asked.gpus = 0.5 * static_cast<double>(1 + random() % 4);
    if (check_booking_bounds(bounds, booked, asked, kNow)) {
      booked.push_back({uid, asked.begins[0], asked.begins[0] + asked.lasts, asked.gpus});
    } else {
      ++refused;
    }
  }
  ASSERT_GT(refused, 0);
  ASSERT_GT(booked.size(), 10u);
  for (auto from = kNow - kBookingWindow; from < kNow + 800h; from += 1h) {
    double all = 0;
    std::map<uid_t, double> of;
    for (const BookedTime& each : booked) {
      const auto part = std::min(each.until, from + kBookingWindow) - std::max(each.from, from);
      const double hours = std::max(0.0, std::chrono::duration<double>(part).count() / 3600);
      all += hours * each.gpus;
      of[each.uid] += hours * each.gpus;
    }
    EXPECT_LE(all, 168.01);
    for (const auto& [uid, sum] : of) EXPECT_LE(sum, 84.01) << uid;
  }
}

}  // namespace
}  // namespace gpurota::lease
