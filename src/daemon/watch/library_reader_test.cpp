// Tests LibraryReader with processes whose /proc answers at once, late or never: which state it
// returns for each process, and that the state thread never waits.
#include "daemon/watch/library_reader.h"

#include "testing/fake_event_loop.h"
#include "testing/held_up.h"

#include <gtest/gtest.h>

#include <mutex>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using watch::Library;

constexpr const char* kSocket = "/run/gpurota/tenant.sock";

// The images of processes in /proc, read by the workers' threads.
struct Proc : testing::HeldUp<pid_t> {
  std::map<pid_t, sys::ProcessImage> images;
  int reads = 0;

  std::optional<sys::ProcessImage> read(pid_t pid) {
    std::unique_lock lock(mutex());
    ++reads;
    wait(lock, pid);
    const auto image = images.find(pid);
    return image == images.end() ? std::nullopt : std::optional(image->second);
  }
};

class LibraryReaderTest : public ::testing::Test {
 protected:
  ~LibraryReaderTest() override { proc->let_all_go(); }

  static sys::ProcessImage told() {
    sys::ProcessImage image;
    image.library = image.driver = image.has_environment = true;
    image.lease = "L1";
    image.socket = kSocket;
    return image;
  }
  static watch::SeenProcess process(pid_t pid, uid_t uid = 1000) {
    watch::SeenProcess seen;
    seen.pid = pid;
    seen.uid = uid;
    seen.start_ticks = static_cast<std::uint64_t>(pid) * 10;
    seen.lease = LeaseId{1};
    return seen;
  }
  void set(pid_t pid, const sys::ProcessImage& image) {
    const std::lock_guard lock(proc->mutex());
    proc->images[pid] = image;
  }
  // Waits until the state is known, and returns it.
  Library known(const watch::SeenProcess& process, bool asks = false) {
    EXPECT_TRUE(
        loop.run_until([&] { return reader.state_of(process, asks) != Library::kUnknown; }));
    return reader.state_of(process, asks);
  }

  testing::FakeEventLoop loop;
  std::shared_ptr<Proc> proc = std::make_shared<Proc>();
  LibraryReader reader{loop, kSocket,
                       [proc = proc](pid_t pid, std::uint64_t) { return proc->read(pid); }};
};

TEST_F(LibraryReaderTest, LoadedLibraryThatNeverConnectedIsSilent) {
  set(10, told());
  EXPECT_EQ(reader.state_of(process(10), false), Library::kUnknown) << "not read yet";
  EXPECT_EQ(known(process(10)), Library::kSilent);
}

TEST_F(LibraryReaderTest, AProcessThatWasWelcomedOnceIsAway) {
  sys::ProcessImage image = told();
  image.page = true;
  set(10, image);
  EXPECT_EQ(known(process(10)), Library::kAway);
}

TEST_F(LibraryReaderTest, WithoutTheLibraryOrTheDriverItIsAbsent) {
  sys::ProcessImage no_library = told(), no_driver = told();
  no_library.library = false;
  no_driver.driver = false;
  set(10, no_library);
  set(11, no_driver);
  EXPECT_EQ(known(process(10)), Library::kAbsent);
  EXPECT_EQ(known(process(11)), Library::kAbsent) << "the driver's number may be somebody else's";
}

TEST_F(LibraryReaderTest, LibraryWithoutALimitIsHealthy) {
  sys::ProcessImage emptied = told(), whole = told(), elsewhere = told();
  emptied.lease = emptied.socket = "";
  whole.socket = "";
  elsewhere.socket = "/tmp/another/tenant.sock";
  set(10, emptied);
  set(11, whole);
  set(12, elsewhere);
  EXPECT_EQ(known(process(10)), Library::kAbsent);
  EXPECT_EQ(known(process(11)), Library::kAbsent);
  EXPECT_EQ(known(process(12)), Library::kAbsent);
}

TEST_F(LibraryReaderTest, LibraryInAnAutomaticLeaseAsksByItself) {
  sys::ProcessImage image = told();
  image.lease = image.socket = "";
  set(10, image);
  EXPECT_EQ(known(process(10), true), Library::kSilent);
  image.lease = "L9";
  set(11, image);
  EXPECT_EQ(known(process(11), true), Library::kAbsent) << "a whole GPU of another daemon";
}

TEST_F(LibraryReaderTest, OverwrittenEnvironmentCountsAsTheParents) {
  sys::ProcessImage image = told();
  image.has_environment = false;
  image.lease = image.socket = "";
  set(10, image);
  EXPECT_EQ(known(process(10)), Library::kSilent);
  watch::SeenProcess covered = process(11);
  covered.lease.reset();  // its user's reservation covers it: nobody knows who started it
  set(11, image);
  EXPECT_EQ(known(covered), Library::kAbsent);
}

TEST_F(LibraryReaderTest, IsReadAgainAfterAWhileAndNotBefore) {
  set(10, told());
  EXPECT_EQ(known(process(10)), Library::kSilent);
  EXPECT_EQ(known(process(10)), Library::kSilent);
  EXPECT_EQ(proc->reads, 1);
  sys::ProcessImage welcomed = told();
  welcomed.page = true;
  set(10, welcomed);
  loop.advance(1s);
  EXPECT_TRUE(
      loop.run_until([&] { return reader.state_of(process(10), false) == Library::kAway; }));
}

TEST_F(LibraryReaderTest, AnotherProcessWithThatPidIsReadAnew) {
  set(10, told());
  EXPECT_EQ(known(process(10)), Library::kSilent);
  watch::SeenProcess other = process(10);
  ++other.start_ticks;
  EXPECT_EQ(reader.state_of(other, false), Library::kUnknown);
  EXPECT_EQ(known(other), Library::kSilent);
}

TEST_F(LibraryReaderTest, AProcessThatDelaysTheReaderIsUnknownAndDelaysNobodyElse) {
  set(10, told());
  set(11, told());
  EXPECT_EQ(known(process(10, 1000)), Library::kSilent);
  proc->set_stuck(10, true);
  loop.advance(1s);
  EXPECT_EQ(reader.state_of(process(10, 1000), false), Library::kSilent) << "a second ago";
  loop.advance(5s);
  EXPECT_EQ(reader.state_of(process(10, 1000), false), Library::kUnknown);
  EXPECT_EQ(known(process(11, 1001)), Library::kSilent);
  proc->set_stuck(10, false);
  EXPECT_EQ(known(process(10, 1000)), Library::kSilent);
}

TEST_F(LibraryReaderTest, RemovesUnlistedProcessesEvenWhileTheyAreRead) {
  set(10, told());
  proc->set_stuck(10, true);
  EXPECT_EQ(reader.state_of(process(10), false), Library::kUnknown);
  reader.keep_only({});
  proc->set_stuck(10, false);
  EXPECT_EQ(known(process(10)), Library::kSilent);
  reader.keep_only({});
  EXPECT_EQ(reader.state_of(process(10), false), Library::kUnknown);
  EXPECT_EQ(known(process(10)), Library::kSilent);
}

}  // namespace
}  // namespace gpurota::daemon
