// Programs that libgpurota should limit and does not: what is found and when, and what is never
// found.
#include "watch/watcher_test.h"

#include <gmock/gmock.h>

namespace gpurota::watch {
namespace {

using ::testing::IsEmpty;

class NotLimitedTest : public WatcherTest {
 protected:
  NotLimitedTest() {
    action = Action::kStop;
    reading.leases = {slice(kLease, kAlice, gib(4))};
    reading.processes = {process(10, kAlice, gib(1), kLease)};
    reading.processes[0].library = Library::kSilent;
  }
};

TEST_F(NotLimitedTest, ProcessWithoutTheLibraryIsStoppedHoweverLittleItUses) {
  EXPECT_THAT(see_until(3s), IsEmpty());
  auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kBegun);
  EXPECT_EQ(steps[0].finding.kind, FindingKind::kNotLimited);
  EXPECT_EQ(steps[0].finding.uid, kAlice);
  EXPECT_EQ(steps[0].finding.lease, kLease);
  EXPECT_EQ(steps[0].finding.used, gib(1));
  steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kTerminate);
  ASSERT_EQ(steps[0].targets.size(), 1u);
  EXPECT_EQ(steps[0].targets[0].pid, 10);
}

TEST_F(NotLimitedTest, AProcessThatSaysHelloInTimeIsNoFinding) {
  EXPECT_THAT(see_until(3s), IsEmpty());
  reading.processes[0].library = Library::kNotAsked;
  reading.processes[0].tenant = true;
  EXPECT_THAT(see_until(1min), IsEmpty());
}

TEST_F(NotLimitedTest, TimeIsCountedByProcessAndGpuAndRestarts) {
  EXPECT_THAT(see_until(3s), IsEmpty());
  ++reading.processes[0].start_ticks;
  EXPECT_THAT(see_until(3s), IsEmpty()) << "another process with that pid";
  reading.processes[0].library = Library::kUnknown;
  EXPECT_THAT(see(), IsEmpty());
  reading.processes[0].library = Library::kSilent;
  EXPECT_THAT(see_until(3s), IsEmpty()) << "it was something else meanwhile";
  EXPECT_EQ(see().size(), 1u);
}

TEST_F(NotLimitedTest, UnloadedUnknownOrMovedProgramIsNoFinding) {
  for (const Library library :
       {Library::kNotAsked, Library::kUnknown, Library::kAbsent, Library::kAway}) {
    reading.processes[0].library = library;
    EXPECT_THAT(see_until(1min), IsEmpty());
  }
}

TEST_F(NotLimitedTest, AWholeGpuNeedsNoLibrary) {
  reading.leases = {exclusive(kLease, kAlice)};
  EXPECT_THAT(see_until(1min), IsEmpty());
}

TEST_F(NotLimitedTest, ProcessWithoutMemoryIsNoFinding) {
  reading.processes[0].used = Bytes();
  EXPECT_THAT(see_until(1min), IsEmpty());
  reading.processes[0].used.reset();
  EXPECT_EQ(see_until(4s).size(), 2u) << "the driver lists it and gives no figure";
}

TEST_F(NotLimitedTest, GraphicsAndTheIgnoreListAreSpared) {
  reading.processes[0].graphics = true;
  EXPECT_THAT(see_until(1min), IsEmpty());
  reading.processes[0].graphics = false;
  policy.ignored = {{kAlice, ""}};
  EXPECT_THAT(see_until(1min), IsEmpty());
}

TEST_F(NotLimitedTest, AReservationOfASliceIsALimitToo) {
  reading.leases[0].takes_all_of_user = true;
  reading.processes[0].lease.reset();
  EXPECT_EQ(see_until(4s).size(), 2u);
}

TEST_F(NotLimitedTest, LaterProcessHasItsOwnTime) {
  EXPECT_EQ(see_until(4s).size(), 2u);
  reading.processes.push_back(process(11, kAlice, gib(1), kLease));
  reading.processes[1].library = Library::kSilent;
  EXPECT_THAT(see_until(3s), IsEmpty());
  const auto steps = see();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].what, Step::What::kTerminate);
  EXPECT_EQ(steps[0].targets[0].pid, 11);
}

// The driver lists a pid of another pid namespace: the same pid is another process here.
TEST_F(NotLimitedTest, ProcessIsNotFoundByAPidOfAnotherNamespace) {
  SeenProcess hidden = process(12, std::nullopt, gib(2));
  hidden.gone = true;
  hidden.start_ticks = 0;
  reading.processes[0].library = Library::kUnknown;
  reading.processes.push_back(hidden);
  (void)see_until(6s);
  reading.processes[0].library = Library::kSilent;
  (void)see_until(1min);
  ASSERT_EQ(watcher.open().size(), 1u);
  EXPECT_EQ(watcher.open()[0].kind, FindingKind::kUnreservedUse);
}

}  // namespace
}  // namespace gpurota::watch
