// The events that are still known, newest last. State thread only.
//
// Bounded. When the log is full, the user with the most events loses the oldest. A user who makes
// and releases leases in a loop thus pushes out only their own events.
#pragma once

#include "ports/history.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace gpurota::daemon {

class EventLog {
 public:
  explicit EventLog(std::size_t most) : most_(most) {}

  // Takes the events of the store, oldest first. Call before the first add().
  void load(std::vector<ports::StoredEvent> events);
  // Gives the event a number. Returns the ids of the events that were discarded to make room.
  std::vector<std::uint64_t> add(ports::StoredEvent event);

  const std::map<std::uint64_t, ports::StoredEvent>& events() const { return events_; }
  std::uint64_t last_id() const { return last_id_; }
  // Called by the recorder: events up to `id` are in the store. Their numbers are never used again,
  // even if the daemon is killed.
  void set_stored(std::uint64_t id) { stored_id_ = id; }
  std::uint64_t stored_id() const { return stored_id_; }

 private:
  using Owner = std::optional<uid_t>;
  std::optional<std::uint64_t> forget_one();

  std::size_t most_;
  std::uint64_t last_id_ = 0;
  std::uint64_t stored_id_ = 0;
  std::map<std::uint64_t, ports::StoredEvent> events_;
  std::map<Owner, std::deque<std::uint64_t>> by_owner_;
};

// The position of a reader in the log. The reader takes batches as fast as it can; the log does not
// wait for it.
class EventCursor {
 public:
  // Begins with the oldest event. Events that are discarded from now on count as missed.
  explicit EventCursor(const EventLog& log) : log_(log), from_(log.last_id()) {}
  // Continues after the event `after`; events discarded since then count as missed. If no event has
  // had the number `after` (the store is a new one), begins with the oldest event.
  EventCursor(const EventLog& log, std::uint64_t after) : EventCursor(log) {
    if (after <= log.last_id()) from_ = at_ = after;
  }

  struct Batch {
    std::vector<const ports::StoredEvent*> events;
    std::uint64_t missed = 0;
  };
  // The most events that one next() looks at.
  static constexpr std::size_t kMostLookedAt = 500;
  // The next events that `wanted` accepts: at most `most`, and none after `last`. Empty: none of
  // the events that were looked at is wanted, or the reader has seen all.
  Batch next(std::size_t most, const std::function<bool(const ports::StoredEvent&)>& wanted,
             std::uint64_t last = UINT64_MAX);
  bool at_end() const { return is_at(log_.last_id()); }
  bool is_at(std::uint64_t id) const { return at_ >= id; }

 private:
  const EventLog& log_;
  std::uint64_t from_;    // discarded events after this one are missed
  std::uint64_t at_ = 0;  // the last event that was looked at
};

}  // namespace gpurota::daemon
