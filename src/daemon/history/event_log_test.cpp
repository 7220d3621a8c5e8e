#include "daemon/history/event_log.h"

#include <gtest/gtest.h>

namespace gpurota::daemon {
namespace {

ports::StoredEvent event_of(std::optional<uid_t> uid, const std::string& message = "") {
  ports::StoredEvent event;
  event.uid = uid;
  event.message = message;
  return event;
}

bool any(const ports::StoredEvent&) { return true; }

TEST(EventLog, FloodOfOneUserDiscardsOnlyThatUsersEvents) {
  EventLog log(100);
  for (int i = 0; i < 10; ++i) log.add(event_of(1001));
  std::size_t forgotten = 0;
  for (int i = 0; i < 10000; ++i) forgotten += log.add(event_of(1000)).size();
  EXPECT_EQ(log.events().size(), 100u);
  EXPECT_EQ(forgotten, 9910u);
  int others = 0;
  for (const auto& [id, event] : log.events()) others += event.uid == 1001u;
  EXPECT_EQ(others, 10);
}

TEST(EventLog, NumbersContinueAfterARestart) {
  EventLog log(10);
  ports::StoredEvent old = event_of(1000);
  old.id = 41;
  log.load({old});
  log.add(event_of(1000));
  EXPECT_EQ(log.last_id(), 42u);
}

TEST(EventCursor, ReturnsStoredEventsInOrderAndThenNewOnes) {
  EventLog log(100);
  for (int i = 0; i < 5; ++i) log.add(event_of(1000, std::to_string(i)));
  EventCursor cursor(log);
  EXPECT_EQ(cursor.next(3, any).events.size(), 3u);
  EXPECT_FALSE(cursor.at_end());
  const auto rest = cursor.next(3, any);
  ASSERT_EQ(rest.events.size(), 2u);
  EXPECT_EQ(rest.events[1]->message, "4");
  EXPECT_TRUE(cursor.at_end());
  EXPECT_TRUE(cursor.next(3, any).events.empty());
  log.add(event_of(1000, "5"));
  EXPECT_EQ(cursor.next(3, any).events.size(), 1u);
}

TEST(EventCursor, SlowReaderGetsTheNumberOfMissedEvents) {
  EventLog log(10);
  for (int i = 0; i < 10; ++i) log.add(event_of(1000));
  EventCursor cursor(log);
  (void)cursor.next(100, any);
  for (int i = 0; i < 1000; ++i) log.add(event_of(1000));
  const auto batch = cursor.next(100, any);
  EXPECT_EQ(batch.events.size(), 10u);
  EXPECT_EQ(batch.missed, 990u);
  EXPECT_EQ(cursor.next(100, any).missed, 0u);
}

TEST(EventCursor, EventsDiscardedBeforeTheReaderCameAreNotMissed) {
  EventLog log(10);
  for (int i = 0; i < 1000; ++i) log.add(event_of(1000));
  EventCursor cursor(log);
  EXPECT_EQ(cursor.next(100, any).missed, 0u);
}

TEST(EventCursor, ContinuesWhereAnEarlierReaderStopped) {
  EventLog log(10);
  for (int i = 0; i < 10; ++i) log.add(event_of(1000));
  EventCursor cursor(log, 8);
  const auto rest = cursor.next(100, any);
  ASSERT_EQ(rest.events.size(), 2u);
  EXPECT_EQ(rest.events[0]->id, 9u);
  EXPECT_EQ(rest.missed, 0u);
  for (int i = 0; i < 100; ++i) log.add(event_of(1000));
  EXPECT_EQ(EventCursor(log, 10).next(100, any).missed, 90u) << "forgotten while it was away";
  EXPECT_EQ(EventCursor(log, 1000000).next(100, any).events.size(), 10u) << "another store";
}

TEST(EventCursor, ReturnsNoEventAfterTheLastPublishedOne) {
  EventLog log(10);
  for (int i = 0; i < 5; ++i) log.add(event_of(1000));
  log.set_stored(3);
  EventCursor cursor(log);
  EXPECT_EQ(cursor.next(100, any, log.stored_id()).events.size(), 3u);
  EXPECT_TRUE(cursor.next(100, any, log.stored_id()).events.empty());
  log.set_stored(5);
  const auto rest = cursor.next(100, any, log.stored_id());
  EXPECT_EQ(rest.events.size(), 2u);
  EXPECT_EQ(rest.missed, 0u);
}

TEST(EventCursor, ReadsABoundedNumberAtATimeAndMissesNone) {
  EventLog log(10000);
  for (int i = 0; i < 3000; ++i) log.add(event_of(i == 2999 ? 7u : 1u));
  EventCursor cursor(log);
  std::size_t found = 0, rounds = 0;
  while (!cursor.at_end()) {
    const auto batch = cursor.next(100, [](const auto& event) { return event.uid == 7u; });
    found += batch.events.size();
    EXPECT_EQ(batch.missed, 0u);
    ++rounds;
  }
  EXPECT_EQ(found, 1u);
  EXPECT_EQ(rounds, 3000 / EventCursor::kMostLookedAt);
}

TEST(EventCursor, ReturnsOnlyMatchingEvents) {
  EventLog log(100);
  for (uid_t uid = 0; uid < 10; ++uid) log.add(event_of(uid));
  EventCursor cursor(log);
  const auto batch = cursor.next(100, [](const auto& event) { return event.uid == 3u; });
  EXPECT_EQ(batch.events.size(), 1u);
  EXPECT_TRUE(cursor.at_end());
}

}  // namespace
}  // namespace gpurota::daemon
