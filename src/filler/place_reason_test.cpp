// Each reason that a filler gets when its cause occurs, compared with testdata/reasons.txt. With
// GPUROTA_REWRITE_GOLDEN=1 the file is rewritten: check each sentence then.
#include "filler/place_reason.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace gpurota::filler {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGolden = GPUROTA_TESTDATA "/reasons.txt";
constexpr TimePoint kBegin{1000s};
const WallTime kWall{100h};

struct Case {
  const char* what;
  std::optional<Reason> reason;
};

std::optional<Reason> reason_of(const TurnTaking& turns) {
  const auto start = turns.start_at();
  if (!start) return place_reason(turns, "2", std::nullopt);
  return place_reason(turns, "2",
                      kWall + std::chrono::duration_cast<std::chrono::seconds>(*start - kBegin));
}

std::optional<Reason> seen(const Sight& sight) {
  TurnTaking turns({});
  (void)turns.observe(sight, kBegin);
  return reason_of(turns);
}

// A filler that runs, and then must leave for this reason.
TurnTaking leaving(const Sight& sight) {
  TurnTaking turns({});
  turns.on_found(kBegin);
  (void)turns.observe(sight, kBegin + 1s);
  return turns;
}

TurnTaking dismissed(Why why) {
  TurnTaking turns({});
  turns.on_found(kBegin);
  (void)turns.dismiss(why);
  return turns;
}

TurnTaking resting() {
  TurnTaking turns = leaving({.foreign = true});
  turns.on_gone(kBegin + 2s, true);
  (void)turns.observe({}, kBegin + 3s);
  return turns;
}

std::vector<Case> cases() {
  return {{"nobody has looked yet", reason_of(TurnTaking({}))},
          {"nobody is there", seen({})},
          {"it is out of service", seen({.in_service = false})},
          {"a lease is there", seen({.leased = true})},
          {"somebody waits", seen({.wanted = true})},
          {"somebody without a lease is there", seen({.foreign = true})},
          {"the GPU is busy", seen({.load_percent = 50})},
          {"a filler is on, and a lease comes", reason_of(leaving({.leased = true}))},
          {"a filler had to leave", reason_of(resting())},
          {"it was paused", reason_of(dismissed(Why::kPaused))},
          {"it was removed", reason_of(dismissed(Why::kRemoved))},
          {"the next filler has the turn", reason_of(dismissed(Why::kStayOver))}};
}

TEST(PlaceReason, MatchesTheSentencesInItsFile) {
  std::string now;
  for (const Case& each : cases()) {
    ASSERT_TRUE(each.reason) << each.what;
    now +=
        fmt::format("{}\n  {}: {}\n", each.what, to_string(each.reason->code), each.reason->text);
    if (each.reason->time)
      now += fmt::format("  time: in {} s\n", (*each.reason->time - kWall) / 1s);
  }
  const char* const rewrite = std::getenv("GPUROTA_REWRITE_GOLDEN");
  if (rewrite != nullptr && *rewrite == '1') std::ofstream(kGolden) << now;
  std::ifstream in(kGolden);
  std::stringstream file;
  file << in.rdbuf();
  EXPECT_EQ(file.str(), now) << kGolden << " differs; GPUROTA_REWRITE_GOLDEN=1 writes it anew";
}

TEST(PlaceReason, EachFillerCodeOccurs) {
  std::set<ReasonCode> made;
  for (const Case& each : cases()) made.insert(each.reason->code);
  EXPECT_TRUE(made.contains(ReasonCode::kOutOfService));
  for (int i = static_cast<int>(ReasonCode::kLeased); i <= static_cast<int>(ReasonCode::kResting);
       ++i) {
    EXPECT_TRUE(made.contains(static_cast<ReasonCode>(i))) << to_string(static_cast<ReasonCode>(i));
  }
}

TEST(PlaceReason, HasAPlaceForATimeOnlyIfATimeIsKnown) {
  for (const Case& each : cases()) {
    EXPECT_EQ(each.reason->text.find(kTimePlace) != std::string::npos,
              each.reason->time.has_value())
        << each.what;
  }
}

TEST(PlaceReason, RunningFillerHasNoReason) {
  TurnTaking turns({});
  turns.on_found(kBegin);
  EXPECT_FALSE(reason_of(turns));
}

}  // namespace
}  // namespace gpurota::filler
