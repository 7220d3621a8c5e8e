// Tests that events not yet stored outlive a kill -9 of the daemon.
#include "daemon/history/event_spill.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/history/recorder.h"
#include "testing/fake_history.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::FakeHistory;
using ::testing::IsEmpty;

ports::StoredEvent full_event() {
  ports::StoredEvent event;
  event.id = 41;
  event.time = WallTime(1234567ms);
  event.type = "lease_made";
  event.lease = LeaseId{7};
  event.gpu_index = 0;
  event.gpu = kGpu;
  event.uid = 0;
  event.finding = "unused";
  event.bytes = gib(3);
  event.count = 5;
  event.message = "L7 made: \n 3:x";
  event.pids = {12, 345};
  event.detail = std::string("\0\xff bytes", 8);
  return event;
}

std::vector<ports::StoredEvent> decoded(std::string_view text) { return decode_events(text); }

TEST(EventSpill, WrittenEventsAreReadBackByteForByte) {
  ports::StoredEvent bare;
  bare.id = 42;
  const std::string text = encode_event(full_event()) + encode_event(bare);
  EXPECT_THAT(decoded(text), ElementsAre(full_event(), bare));
}

TEST(EventSpill, WholeEventsOfATruncatedFileAreRead) {
  const std::string one = encode_event(full_event()), text = one + one;
  for (std::size_t size = 0; size < text.size(); ++size) {
    std::string_view rest(text.data(), size);
    EXPECT_EQ(decode_events(rest).size(), size / one.size()) << size;
    EXPECT_EQ(rest.size(), size % one.size());
  }
  EXPECT_THAT(decoded("99999999999999999999:x"), IsEmpty());
  EXPECT_THAT(decoded("-1:x"), IsEmpty());
}

class SpilledEventsTest : public FakeWorldTest {
 protected:
  Recorder::Parts parts(ports::History& history, const std::string& spill) {
    return {loop,    &history, "",   config, processes, gpus, [] { return WallTime(1h); },
            nullptr, nullptr,  spill};
  }
  static void tell(Recorder& recorder, const std::string& message) {
    Recorder::Event event;
    event.type = proto::EventType::kGpuDrained;
    event.message = message;
    recorder.record(std::move(event));
  }
  static std::vector<std::string> messages(const FakeHistory& history) {
    std::vector<std::string> all;
    for (const auto& event : history.events) all.push_back(event.message);
    return all;
  }
  // Starts the next daemon with what the last one left. Returns how many events that daemon knows
  // from the start.
  std::uint64_t begin_again(FakeHistory& history, const std::string& spill) {
    Recorder next(parts(history, spill));
    EXPECT_TRUE(next.start({}));
    const std::uint64_t known = next.events().last_id();
    loop.advance(1s);
    return known;
  }

  testing::TempDir dir_;
};

TEST_F(SpilledEventsTest, NextDaemonStoresSpilledEventsOnceAndInOrder) {
  FakeHistory before;
  Recorder first(parts(before, dir_.file("events")));
  ASSERT_TRUE(first.start({}));
  tell(first, "stored");
  loop.advance(1s);
  tell(first, "a");
  tell(first, "b");
  // A copy of the present state, as a kill -9 would leave it.
  FakeHistory after = before;
  testing::write_file(dir_.file("left"), testing::read_file(dir_.file("events")));
  ASSERT_THAT(messages(after), ElementsAre("stored"));

  EXPECT_EQ(begin_again(after, dir_.file("left")), 3u);
  EXPECT_THAT(messages(after), ElementsAre("stored", "a", "b"));
  EXPECT_EQ(testing::read_file(dir_.file("left")), "");
}

TEST_F(SpilledEventsTest, KillBetweenStoringAndEmptyingStoresNoEventTwice) {
  FakeHistory history;
  Recorder first(parts(history, dir_.file("events")));
  ASSERT_TRUE(first.start({}));
  tell(first, "a");
  testing::write_file(dir_.file("left"), testing::read_file(dir_.file("events")));
  loop.advance(1s);
  FakeHistory after = history;
  EXPECT_EQ(begin_again(after, dir_.file("left")), 1u);
  EXPECT_THAT(messages(after), ElementsAre("a"));
}

TEST_F(SpilledEventsTest, TruncatedEventHidesNoLaterEvent) {
  FakeHistory history, after;
  testing::write_file(dir_.file("events"), encode_event(full_event()) + "3:12");
  history.full = true;
  Recorder first(parts(history, dir_.file("events")));
  ASSERT_TRUE(first.start({}));
  tell(first, "later");
  (void)begin_again(after, dir_.file("events"));
  EXPECT_THAT(messages(after), ElementsAre(full_event().message, "later"));
}

TEST_F(SpilledEventsTest, FullDiskLosesNoEvents) {
  FakeHistory history;
  Recorder recorder(parts(history, dir_.file("events")));
  ASSERT_TRUE(recorder.start({}));
  history.full = true;
  tell(recorder, "a");
  loop.advance(1s);
  EXPECT_NE(testing::read_file(dir_.file("events")), "");
  history.full = false;
  tell(recorder, "b");
  loop.advance(1s);
  EXPECT_THAT(messages(history), ElementsAre("a", "b"));
  EXPECT_EQ(testing::read_file(dir_.file("events")), "");
}

TEST_F(SpilledEventsTest, EventLogWorksWithoutTheFile) {
  FakeHistory history;
  Recorder recorder(parts(history, dir_.file("nowhere/events")));
  ASSERT_TRUE(recorder.start({}));
  tell(recorder, "a");
  loop.advance(1s);
  EXPECT_THAT(messages(history), ElementsAre("a"));
}

}  // namespace
}  // namespace gpurota::daemon
