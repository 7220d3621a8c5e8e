// Every family of device memory that has no scenario in probe.cpp: families_probe.cpp, one program.
#include "fixture.h"

namespace gpurota::interposer_test {
namespace {

TEST_F(InterposerTest, ChargesEveryFamilyAndGivesItBack) {
  const auto program = start(PROBE_FAMILIES, "", lease());
  const std::string said = program->read_all();
  EXPECT_EQ(program->wait(), 0) << said;
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
