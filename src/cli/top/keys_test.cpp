#include "cli/top/keys.h"

#include "cli/top/top_samples_test.h"
#include "testing/effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli::topview {
namespace {

class TopKeys : public ::testing::Test {
 protected:
  TopKeys() { keep_choice(state_, model_); }

  Action press(const std::string& characters) {
    Action action;
    for (const char c : characters) {
      const Key key = c == '\n'   ? Key{Key::kEnter}
                      : c == '\b' ? Key{Key::kBackspace}
                                  : Key{Key::kCharacter, std::string(1, c)};
      action = on_key(state_, key, model_, 10);
    }
    return action;
  }
  Action press(Key::Name name) { return on_key(state_, {name}, model_, 10); }
  void choose(LeaseId lease) {
    for (const Subject& each : subjects(make_rows(model_, state_.choice))) {
      if (each.lease == lease) state_.chosen = each;
    }
  }

  Model model_ = samples::machine("eight");
  State state_;
};

TEST_F(TopKeys, ArrowsChooseGpusLeasesAndRequests) {
  EXPECT_EQ(state_.chosen.gpu, GpuUuid{"GPU-0"});
  EXPECT_FALSE(state_.chosen.lease);
  press(Key::kDown);
  EXPECT_EQ(state_.chosen.lease, LeaseId{10});
  press(Key::kEnd);
  EXPECT_EQ(state_.chosen.request, RequestId{9});
  press(Key::kDown);
  EXPECT_EQ(state_.chosen.request, RequestId{9});
  press(Key::kHome);
  press(Key::kUp);
  EXPECT_EQ(state_.chosen.gpu, GpuUuid{"GPU-0"});
}

TEST_F(TopKeys, QEnds) { EXPECT_EQ(press("q").kind, Action::kQuit); }

TEST_F(TopKeys, QInAnAnswerIsALetter) {
  EXPECT_EQ(press("/q").kind, Action::kNothing);
  EXPECT_EQ(state_.choice.filter, "q");
}

TEST_F(TopKeys, AFilterTakesEffectWhileItIsTypedAndEscapeRemovesIt) {
  press("/caro");
  EXPECT_EQ(state_.choice.filter, "caro");
  press("\b\n");
  EXPECT_EQ(state_.choice.filter, "car");
  EXPECT_EQ(state_.asking, Asking::kNothing);
  press(Key::kEscape);
  EXPECT_EQ(state_.choice.filter, "");
}

TEST_F(TopKeys, EscapeWhileTypingAFilterKeepsThePreviousFilter) {
  press("/caro\n/x");
  EXPECT_EQ(state_.choice.filter, "carox");
  press(Key::kEscape);
  EXPECT_EQ(state_.choice.filter, "caro");
}

TEST_F(TopKeys, BackspaceRemovesAWholeCharacter) {
  press("/");
  (void)on_key(state_, {Key::kCharacter, "ü"}, model_, 10);
  press("\b");
  EXPECT_EQ(state_.typed, "");
}

TEST_F(TopKeys, UserFilterShowsOnlyThatUser) {
  press("ugu_dave\n");
  EXPECT_EQ(state_.choice.user, "gu_dave");
  const auto all = subjects(make_rows(model_, state_.choice));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].lease, LeaseId{15});
}

TEST_F(TopKeys, ReleaseIsAskedFirst) {
  choose(LeaseId{15});
  EXPECT_EQ(press("r").kind, Action::kNothing);
  EXPECT_EQ(question(state_, model_), "release L15 of gu_dave and end its processes? [y/N] ");
  const Action action = press("y");
  EXPECT_EQ(action.kind, Action::kRelease);
  EXPECT_EQ(action.about.lease, LeaseId{15});
}

TEST_F(TopKeys, AnythingButYesChangesNothing) {
  choose(LeaseId{15});
  for (const std::string answer : {"n", "x", "\n", " "}) {
    EXPECT_EQ(press("r" + answer).kind, Action::kNothing) << answer;
    EXPECT_EQ(state_.asking, Asking::kNothing);
  }
  press("r");
  press(Key::kEscape);
  EXPECT_EQ(state_.asking, Asking::kNothing);
}

TEST_F(TopKeys, QuestionKeepsItsLeaseWhenTheSelectionMoves) {
  choose(LeaseId{15});
  press("r");
  state_.chosen = {};
  keep_choice(state_, model_);
  EXPECT_EQ(press("y").about.lease, LeaseId{15});
}

TEST_F(TopKeys, ARequestIsCancelled) {
  press(Key::kEnd);
  EXPECT_EQ(press("ry").kind, Action::kCancel);
}

TEST_F(TopKeys, ExtendTakesATime) {
  choose(LeaseId{15});
  const Action action = press("e1h30m\n");
  EXPECT_EQ(action.kind, Action::kExtend);
  EXPECT_EQ(action.seconds, 5400);
}

TEST_F(TopKeys, InvalidTimeIsRefusedWithAValidExample) {
  choose(LeaseId{15});
  EXPECT_EQ(press("esoon\n").kind, Action::kNothing);
  EXPECT_TRUE(state_.refused);
  EXPECT_THAT(state_.message, ::testing::HasSubstr("soon"));
}

TEST_F(TopKeys, OnlyALeaseCanBeExtended) {
  EXPECT_EQ(press("e").kind, Action::kNothing);
  EXPECT_TRUE(state_.refused);
  EXPECT_EQ(state_.asking, Asking::kNothing);
}

TEST_F(TopKeys, DrainAppliesToTheGpuOfTheSelection) {
  choose(LeaseId{15});
  press("d");
  EXPECT_EQ(question(state_, model_), "take GPU 3 out of service? Current leases continue. [y/N] ");
  const Action action = press("y");
  EXPECT_EQ(action.kind, Action::kDrain);
  EXPECT_EQ(action.about.gpu, GpuUuid{"GPU-3"});
}

TEST_F(TopKeys, ConfirmationAppliesToTheLeaseAskedAbout) {
  choose(LeaseId{15});
  press("d");
  const Model before = std::exchange(model_, samples::machine("trouble"));
  state_.about.gpu = GpuUuid{"GPU-1"};  // drained on that machine
  EXPECT_EQ(press("y").kind, Action::kDrain);
}

TEST_F(TopKeys, ADrainedGpuIsPutBack) {
  model_ = samples::machine("trouble");
  for (const Subject& each : subjects(make_rows(model_, state_.choice))) {
    if (each.gpu == GpuUuid{"GPU-1"} && !each.lease) state_.chosen = each;
  }
  EXPECT_EQ(press("dy").kind, Action::kUndrain);
}

TEST_F(TopKeys, SortGoesThroughAllOrders) {
  press("s");
  EXPECT_EQ(state_.choice.sort, Sort::kUser);
  press("sss");
  EXPECT_EQ(state_.choice.sort, Sort::kLease);
}

TEST_F(TopKeys, EscapeLeavesHelpAndDetails) {
  press("?");
  EXPECT_TRUE(state_.help);
  press(Key::kEscape);
  EXPECT_FALSE(state_.help);
  press("\n");
  EXPECT_TRUE(state_.details);
  press(Key::kEscape);
  EXPECT_FALSE(state_.details);
}

TEST_F(TopKeys, TheChoiceStaysAtTheGpuOfALeaseThatEnds) {
  choose(LeaseId{15});
  Answers answers = model_.answers();
  std::erase_if(answers.status.leases,
                [](const auto& lease) { return lease.lease_id == LeaseId{15}; });
  model_.take(std::move(answers));
  keep_choice(state_, model_);
  EXPECT_EQ(state_.chosen.gpu, GpuUuid{"GPU-3"});
  EXPECT_FALSE(state_.chosen.lease);
}

// Whatever is typed while leases begin and end, the chosen lease exists, and nothing is done
// without a question.
TEST_F(TopKeys, AnyKeysInAnyOrderDoNoHarm) {
  const std::string letters = "qjkgG?h/ustTerdynY1 \f\x01";
  std::uint32_t random = 1;
  const auto next = [&random](std::uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % below;
  };
  const std::vector<Model> models = {samples::machine("eight"), samples::machine("trouble"),
                                     Model(), samples::machine("mig")};
  constexpr int kKeys = testing::effort(20000);
  for (int i = 0; i < kKeys; ++i) {
    const Model& model =
        models[next(400) == 0 ? next(4) : static_cast<std::uint32_t>(i / (kKeys / 4))];
    const Asking asked = state_.asking;
    const auto name = static_cast<Key::Name>(next(11));
    const Key key{name,
                  name == Key::kCharacter ? std::string(1, letters[next(22)]) : std::string()};
    const Action action = on_key(state_, key, model, next(50));
    if (action.kind != Action::kNothing && action.kind != Action::kQuit &&
        action.kind != Action::kRedraw) {
      EXPECT_NE(asked, Asking::kNothing);
    }
    const auto all = subjects(make_rows(model, state_.choice));
    EXPECT_EQ(all.empty(), !state_.chosen.is_something());
    if (i % 50 == 0)
      (void)draw(model, state_, {.width = next(200), .height = next(60), .live = true});
  }
}

}  // namespace
}  // namespace gpurota::cli::topview
