// The events that are still known, newest last. State thread only.
//
// Bounded. When it is full, the user with the most events loses the oldest, so that one who makes
// and releases leases in a loop pushes out only what that user did.
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

  // From the store, oldest first; before anything is added.
  void load(std::vector<ports::StoredEvent> events);
  // Gives it its number. Returns the ids that had to go for it.
  std::vector<std::uint64_t> add(ports::StoredEvent event);

  const std::map<std::uint64_t, ports::StoredEvent>& events() const { return events_; }
  std::uint64_t last_id() const { return last_id_; }
  // Up to here they are in the store: a number that was told from there is never used again, even
  // if the daemon is killed. The recorder says so.
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

// Where a reader is. The reader takes batches as fast as it can; the log does not wait for it.
class EventCursor {
 public:
  // Begins with the oldest event. Events that are forgotten later than now count as missed.
  explicit EventCursor(const EventLog& log) : log_(log), from_(log.last_id()) {}
  // Goes on behind this one; what has been forgotten since counts as missed. A number that was
  // never given (the store is a new one): begins with the oldest.
  EventCursor(const EventLog& log, std::uint64_t after) : EventCursor(log) {
    if (after <= log.last_id()) from_ = at_ = after;
  }

  struct Batch {
    std::vector<const ports::StoredEvent*> events;
    std::uint64_t missed = 0;
  };
  // So many are looked at, at a time.
  static constexpr std::size_t kMostLookedAt = 500;
  // The next events that `wanted` likes, up to `most`, none behind `last`. Empty: of those that
  // were looked at none is wanted, or the reader has seen all.
  Batch next(std::size_t most, const std::function<bool(const ports::StoredEvent&)>& wanted,
             std::uint64_t last = UINT64_MAX);
  bool at_end() const { return is_at(log_.last_id()); }
  bool is_at(std::uint64_t id) const { return at_ >= id; }

 private:
  const EventLog& log_;
  std::uint64_t from_;    // later ones are all to be seen
  std::uint64_t at_ = 0;  // the last one that was looked at
};

}  // namespace gpurota::daemon
