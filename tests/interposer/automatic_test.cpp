// Programs that preload libgpurota.so without a lease, where the site gives them one automatically.
#include "fixture.h"

#include <filesystem>
#include <fstream>

namespace gpurota::interposer_test {
namespace {

class AutomaticTest : public InterposerTest {
 protected:
  void SetUp() override {
    InterposerTest::SetUp();
    switch_on();
    daemon_->give_automatically(GPUROTA_OK, kToken, "0");
  }

  void switch_on() { std::ofstream(marker()).put('\n'); }
  std::string marker() const { return dir_.file("automatic"); }

  std::map<std::string, std::string> plain() const {
    return {{"LD_PRELOAD", foreign(PROBE_LIBRARY)},
            {"GPUROTA_LEASE", ""},
            {"GPUROTA_SOCKET", ""},
            {"GPUROTA_RUNTIME_DIR", dir_.path()},
            {"GPUROTA_WAIT_MS", "5000"}};
  }

  int run_plain(const std::string& scenario, const std::string& lookup = "") {
    auto extra = plain();
    if (!lookup.empty()) extra["PROBE_LOOKUP"] = lookup;
    return start(lookup.empty() ? PROBE_LINKED : PROBE_DYNAMIC, scenario, extra)->wait();
  }
};

class EachAutomaticLookup : public AutomaticTest,
                            public ::testing::WithParamInterface<const char*> {};

TEST_P(EachAutomaticLookup, HoldsAProgramToTheLeaseThatItIsGiven) {
  EXPECT_EQ(run_plain("exhaust", GetParam()), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 1);
  ASSERT_EQ(daemon_->hellos().size(), 1u);
  EXPECT_EQ(daemon_->hellos()[0].lease, 12u);
  EXPECT_EQ(daemon_->hellos()[0].token, kToken);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

INSTANTIATE_TEST_SUITE_P(Automatic, EachAutomaticLookup,
                         ::testing::Values("", "dlsym", "proc1", "proc2", "ptds"),
                         [](const auto& each) {
                           return std::string(*each.param == 0 ? "linked" : each.param);
                         });

TEST_F(AutomaticTest, RequestsNoLeaseUnlessTheSiteHasEnabledThem) {
  std::filesystem::remove(marker());
  EXPECT_EQ(run_plain("whole_gpu"), 0);
  EXPECT_EQ(run_plain("whole_gpu", "proc2"), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 0);
}

TEST_F(AutomaticTest, RequestsNoLeaseBeforeTheDriverIsInitialised) {
  EXPECT_EQ(run_plain("queries_only"), 0);
  EXPECT_EQ(run_plain("queries_only", "proc2"), 0);
  Program stranger({"/bin/true"}, plain());
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 0);
}

TEST_F(AutomaticTest, LeaseInTheEnvironmentIsUsed) {
  auto extra = lease();
  extra["GPUROTA_RUNTIME_DIR"] = dir_.path();
  EXPECT_EQ(start(PROBE_LINKED, "exhaust", extra)->wait(), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 0);
}

TEST_F(AutomaticTest, LeaseOnWholeGpusEnforcesNoLimit) {
  auto extra = plain();
  extra["GPUROTA_LEASE"] = "L12";
  EXPECT_EQ(start(PROBE_LINKED, "whole_gpu", extra)->wait(), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 0);
}

TEST_F(AutomaticTest, TheProgramSeesTheGpusOfItsLeaseOnly) {
  daemon_->give_automatically(GPUROTA_OK, kToken, "1");
  const auto extra = plain();
  const auto program = start(PROBE_LINKED, "uuids", extra);
  std::string expected;
  for (const std::uint8_t byte : uuids_[1]) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    expected += digits;
  }
  EXPECT_EQ(program->read_line(), expected);
  EXPECT_EQ(program->read_line(), "");
}

TEST_F(AutomaticTest, TheVariablesOfTheLeaseReplaceThoseOfTheProgramAndNoOthers) {
  auto extra = plain();
  extra["CUDA_VISIBLE_DEVICES"] = "1,0";
  extra["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST";
  extra["PROBE_OTHER"] = "kept";
  const auto program = start(PROBE_LINKED, "variables", extra);
  EXPECT_EQ(program->read_line(), "0 PCI_BUS_ID kept");
  EXPECT_EQ(program->wait(), 0);
}

TEST_F(AutomaticTest, AProgramThatWantsNoGpuNeedsNoLease) {
  auto extra = plain();
  extra["CUDA_VISIBLE_DEVICES"] = "-1";
  EXPECT_EQ(start(PROBE_LINKED, "no_gpu", extra)->wait(), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 0);
}

TEST_F(AutomaticTest, ARefusedProgramHasNoGpuAndMayAskAgain) {
  daemon_->give_automatically(GPUROTA_REFUSED_LIMIT, "", "");
  auto extra = plain();
  extra["GPUROTA_DEBUG"] = dir_.file("debug.log");
  const auto program = start(PROBE_LINKED, "second_try", extra);
  ASSERT_EQ(program->read_line(), "refused");
  EXPECT_NE(testing::read_file(dir_.file("debug.log")).find("no lease for this program"),
            std::string::npos);
  daemon_->give_automatically(GPUROTA_OK, kToken, "0");
  program->write_line("go");
  EXPECT_EQ(program->wait(), 0);
}

TEST_F(AutomaticTest, ProgramWithoutAutomaticLeaseRunsWithoutLimits) {
  daemon_->give_automatically(GPUROTA_UNMANAGED, "", "");
  EXPECT_EQ(run_plain("whole_gpu"), 0);
  EXPECT_EQ(run_plain("whole_gpu", "proc2"), 0);
  EXPECT_TRUE(daemon_->hellos().empty());
}

TEST_F(AutomaticTest, WithoutADaemonAProgramHasNoGpuAfterABoundedWait) {
  daemon_.reset();
  auto extra = plain();
  extra["GPUROTA_WAIT_MS"] = "100";
  EXPECT_EQ(start(PROBE_LINKED, "no_gpu", extra)->wait(), 0);
}

TEST_F(AutomaticTest, ChildForkedBeforeItsParentsRequestGetsALeaseOfItsOwn) {
  EXPECT_EQ(run_plain("fork_before"), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 2);
  EXPECT_EQ(daemon_->hellos().size(), 2u);
}

TEST_F(AutomaticTest, ChildForkedAfterItsParentsRequestIsInTheParentsLease) {
  EXPECT_EQ(run_plain("fork_after"), 0);
  EXPECT_EQ(daemon_->asked_for_leases(), 1);
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
