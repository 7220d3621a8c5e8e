#include "daemon/control/reader_bounds.h"

#include "base/log.h"
#include "daemon/control/control_connection.h"

#include <chrono>
#include <utility>

namespace gpurota::daemon {
namespace {

// A client that does not read holds back its user's calls for at most this long.
constexpr Duration kReaderPatience = std::chrono::seconds(10);

}  // namespace

void ReaderBounds::count(ControlConnection& connection) {
  const std::uint64_t before = connection.unread.amount();
  const std::uint64_t now = connection.out.pending().size() + connection.newest.size();
  if (now == before) return;
  if (before == 0) {
    connection.read_at = parts_.loop.now();
    connection.unread = parts_.budgets.charge(connection.caller.uid, Budget::kUnread, now);
  } else {
    connection.unread.set(now);
  }
  if (now < before) on_less(connection.caller.uid);
}

bool ReaderBounds::count_unserved(ControlConnection& connection) {
  const std::uint64_t size = connection.in.buffered();
  const uid_t user = connection.caller.uid;
  if (connection.unserved.amount() != 0) {
    connection.unserved.set(size);
  } else if (size != 0) {
    connection.unserved = parts_.budgets.charge(user, Budget::kUnserved, size);
  }
  return !parts_.budgets.is_used_up(user, Budget::kUnserved);
}

bool ReaderBounds::holds_back(ControlConnection& connection) {
  connection.held_back = parts_.budgets.is_used_up(connection.caller.uid, Budget::kUnread);
  if (connection.held_back) wait_for_readers();
  return connection.held_back;
}

void ReaderBounds::on_less(uid_t user) {
  if (!patience_ || parts_.budgets.is_used_up(user, Budget::kUnread)) return;
  for (const auto& [key, connection] : parts_.connections) {
    if (!connection->held_back || connection->caller.uid != user) continue;
    connection->held_back = false;
    parts_.resume_soon(*connection);
  }
}

void ReaderBounds::wait_for_readers() {
  if (patience_) return;
  patience_ = parts_.loop.add_timer(parts_.loop.now() + kReaderPatience,
                                    ports::Urgency::kHousekeeping, [this] { end_idle_readers(); });
}

void ReaderBounds::end_idle_readers() {
  const auto running_timer = std::move(patience_);  // keeps this callback alive while it runs
  const TimePoint now = parts_.loop.now();
  bool waits = false;
  for (const auto& [key, connection] : parts_.connections) {
    const bool over = parts_.budgets.is_used_up(connection->caller.uid, Budget::kUnread);
    waits |= connection->held_back;
    if (!over || connection->out.empty() || now - connection->read_at < kReaderPatience) continue;
    log::warn("a client does not read, closing the connection", {{"uid", connection->caller.uid}});
    connection->broken = true;
    parts_.resume_soon(*connection);
  }
  if (waits) wait_for_readers();
}

}  // namespace gpurota::daemon
