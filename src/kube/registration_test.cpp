#include "kube/registration.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

using std::chrono::seconds;
using Step = Registration::Step;

class Registering : public ::testing::Test {
 protected:
  Step next(RegistrationFacts facts) { return registration_.next(facts, now_); }
  RegistrationFacts well() const { return {kubelet_, true, 1}; }

  const SocketId kubelet_{1, 2, 3};
  TimePoint now_{seconds(1000)};
  Registration registration_;
};

TEST_F(Registering, ListensBeforeItRegisters) {
  EXPECT_EQ(next({kubelet_, false, 0}), Step::kServe);
  registration_.on_served();
  EXPECT_EQ(next({kubelet_, true, 0}), Step::kRegister);
  registration_.on_registered(kubelet_, now_);
  EXPECT_EQ(next({kubelet_, true, 0}), Step::kNothing);
}

TEST_F(Registering, WaitsForAKubeletThatIsNotThere) {
  EXPECT_EQ(next({{}, true, 0}), Step::kNothing);
}

TEST_F(Registering, RegistersWithEachNewKubelet) {
  registration_.on_registered(kubelet_, now_);
  EXPECT_EQ(next(well()), Step::kNothing);
  RegistrationFacts facts = well();
  facts.kubelet = SocketId{1, 2, 4};
  EXPECT_EQ(next(facts), Step::kRegister);
}

TEST_F(Registering, ServesAgainWhenItsSocketIsGone) {
  registration_.on_registered(kubelet_, now_);
  RegistrationFacts facts = well();
  facts.served = false;
  EXPECT_EQ(next(facts), Step::kServe);
  registration_.on_served();
  EXPECT_EQ(next(well()), Step::kRegister);
}

TEST_F(Registering, RegistersAgainWhenNobodyListensForSeconds) {
  registration_.on_registered(kubelet_, now_);
  RegistrationFacts facts = well();
  facts.streams = 0;
  now_ += seconds(4);
  EXPECT_EQ(next(facts), Step::kNothing);
  now_ += seconds(1);
  EXPECT_EQ(next(facts), Step::kRegister);
}

TEST_F(Registering, WaitsLongerAfterEachRefusal) {
  registration_.on_refused(now_);
  EXPECT_EQ(next(well()), Step::kNothing);
  now_ += std::chrono::milliseconds(500);
  EXPECT_EQ(next(well()), Step::kRegister);
  for (int i = 0; i < 10; ++i) registration_.on_refused(now_);
  now_ += seconds(9);
  EXPECT_EQ(next(well()), Step::kNothing);
  now_ += seconds(1);
  EXPECT_EQ(next(well()), Step::kRegister);
}

}  // namespace
}  // namespace gpurota::kube
