#include "daemon/tenants/park_program.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::daemon {
namespace {

using Words = std::vector<std::string>;

ports::ProgramEnd ended(int code, std::string output) {
  ports::ProgramEnd end;
  end.code = code;
  end.output = std::move(output);
  return end;
}

TEST(ParkProgram, TheCallNamesTheProcessesAndLeavesTimeForTheirMemory) {
  const ParkProgram program{"/sbin/gpurota-park", "/run/park.lock", "", "root"};
  const auto call = park_call(program, "park", {{10, 1}, {11, 2}}, gib(16));
  EXPECT_EQ(call.argv, (Words{"/sbin/gpurota-park", "park", "--lock", "/run/park.lock",
                              "--patience", "124", "10:1", "11:2"}));
  EXPECT_EQ(call.user, "root");
  EXPECT_TRUE(call.finishes);
  EXPECT_GT(call.time_limit, std::chrono::seconds(4 * 124));
  const ParkProgram elsewhere{"/sbin/gpurota-park", "/run/park.lock", "/d/libcuda.so.1", ""};
  const Words words = park_call(elsewhere, "unpark", {{10, 1}}, gib(1)).argv;
  EXPECT_NE(std::find(words.begin(), words.end(), "/d/libcuda.so.1"), words.end());
}

TEST(ParkProgram, ASuccessHasTheSumOfTheTimes) {
  const ParkReport report =
      read_park_report(ended(0, "10 lock ok 0.003\n11 lock ok 0.002\n10 checkpoint ok 1.5\n"));
  EXPECT_TRUE(report.good);
  EXPECT_NEAR(report.seconds, 1.505, 1e-6);
}

TEST(ParkProgram, AFailureNamesTheStepAndTheStates) {
  const ParkReport undone = read_park_report(
      ended(1,
            "10 lock ok 0.0\n11 lock NOT_READY 10.0\n10 unlock ok 0.0\n10 state running\n"
            "11 state gone\n"));
  EXPECT_FALSE(undone.good);
  EXPECT_EQ(undone.why, "process 11: the driver's lock failed: NOT_READY");
  EXPECT_TRUE(undone.all_run());
  const ParkReport stuck =
      read_park_report(ended(1, "10 checkpoint timed out 60.0\n10 state checkpointed\n"));
  EXPECT_EQ(stuck.why, "process 10: the driver's checkpoint failed: timed out");
  EXPECT_FALSE(stuck.all_run());
  EXPECT_TRUE(stuck.tried);
  EXPECT_FALSE(read_park_report(ended(2, "")).tried);
}

TEST(ParkProgram, AnEndWithoutLinesSaysWhatHappened) {
  ports::ProgramEnd end;
  end.started = false;
  end.complaint = "cannot be run: there is no such file";
  EXPECT_EQ(read_park_report(end).why, "gpurota-park: cannot be run: there is no such file");
  end = {};
  end.signal = 9;
  EXPECT_EQ(read_park_report(end).why, "gpurota-park was ended by signal 9");
  end.timed_out = true;
  EXPECT_EQ(read_park_report(end).why, "gpurota-park did not end in time");
}

}  // namespace
}  // namespace gpurota::daemon
