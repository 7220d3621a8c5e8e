// The families of device memory that have no scenario in probe.cpp: runs families_probe.cpp.
#include "fixture.h"

namespace gpurota::interposer_test {
namespace {

TEST_F(InterposerTest, ChargesAndCreditsEveryFamily) {
  const auto program = start(PROBE_FAMILIES, "", lease());
  const std::string said = program->read_all();
  EXPECT_EQ(program->wait(), 0) << said;
  EXPECT_EQ(daemon_->bad_messages(), 0);
}

}  // namespace
}  // namespace gpurota::interposer_test
