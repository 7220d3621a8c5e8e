#include "cli/text/share_text.h"

#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

constexpr std::int64_t kHour = 3600;
constexpr uid_t kBob = 1001, kCarol = 1002;

proto::FairShare share(std::int64_t used, std::int64_t weight = 1) {
  proto::FairShare share;
  share.used_seconds = used;
  share.weight = static_cast<int>(weight);
  share.half_life_seconds = 7 * 24 * kHour;
  return share;
}

proto::FairShare in_group(proto::FairShare share, const char* group, std::int64_t used) {
  share.group = group;
  share.group_used_seconds = used;
  share.group_weight = 2;
  return share;
}

// A request of bob's, behind one of alice's.
proto::Request behind(proto::FairShare own, proto::FairShare other) {
  proto::Request request;
  request.request_id = {7};
  request.uid = kBob;
  request.user = "bob";
  request.fair_share = std::move(own);
  request.overdue = false;
  request.passed_by = proto::Passing{{9}, "alice", std::move(other)};
  return request;
}

TEST(ShareText, ShowsTheUserAheadAndTheUseOfBoth) {
  const proto::Request request = behind(share(41 * kHour), share(3 * kHour));
  EXPECT_EQ(place_text(request), "behind R9 of alice, who has used less");
  EXPECT_EQ(
      place_in_full(request, kBob),
      "behind R9 of alice, who has used less GPU time: alice 3.0 h, you 41 h; what is 7 d old "
      "counts half");
  EXPECT_EQ(
      place_in_full(request, kCarol),
      "behind R9 of alice, who has used less GPU time: alice 3.0 h, bob 41 h; what is 7 d old "
      "counts half");
}

TEST(ShareText, SaysWeightsAndComparesGroupsUnlessBothAreInTheSame) {
  const auto own = in_group(share(kHour), "students", 50 * kHour);
  EXPECT_EQ(place_in_full(behind(own, share(60 * kHour, 4)), kBob),
            "behind R9 of alice, who has used less GPU time: alice 60 h (weight 4), group "
            "students 50 h (weight 2); what is 7 d old counts half");
  EXPECT_EQ(place_in_full(behind(own, in_group(share(90), "students", 50 * kHour)), kBob),
            "behind R9 of alice, who has used less GPU time: alice 1 min 30 s, you 1.0 h; what is "
            "7 d old counts half");
}

TEST(ShareText, IsEmptyIfTheQueueIsInOrderOfArrival) {
  proto::Request request = behind(share(1), share(0));
  request.passed_by.reset();
  EXPECT_EQ(place_text(request) + place_in_full(request, kBob), "");
  request.fair_share.reset();
  EXPECT_EQ(place_in_full(request, kBob), "");
  EXPECT_EQ(share_line({}), "");
}

TEST(ShareText, SaysThatARequestHasWaitedForTooLong) {
  proto::Request request = behind(share(1), share(0));
  request.overdue = true;
  EXPECT_EQ(place_in_full(request, kBob),
            "it has waited for so long that nobody who comes later goes first");
}

TEST(ShareText, ShowsTheUseOfAUser) {
  proto::GetLimits::Reply reply;
  reply.user = "bob\x1b";
  reply.fair_share = in_group(share(41 * kHour, 3), "staff", 50 * kHour);
  EXPECT_EQ(
      share_line(reply),
      "fair share: bob\xef\xbf\xbd has used 41 h of GPU time (weight 3), group staff 50 h (weight "
      "2); what is 7 d old counts half, and whoever has used less goes first\n");
}

}  // namespace
}  // namespace gpurota::cli
