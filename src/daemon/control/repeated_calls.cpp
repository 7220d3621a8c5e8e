#include "daemon/control/repeated_calls.h"

#include <utility>

namespace gpurota::daemon {

RepeatedCalls::RepeatedCalls(ports::EventLoop& loop, Find find, Repeat repeat)
    : loop_(loop), find_(std::move(find)), repeat_(std::move(repeat)) {}

void RepeatedCalls::add(ControlConnection& connection, const proto::Call& call, Waiters& waiters) {
  connection.postponed = call;
  connection.waits_to_repeat = true;
  waiters.push_back(&connection);
}

void RepeatedCalls::wait_for_sample(ControlConnection& connection, const proto::Call& call,
                                    TimePoint latest) {
  add(connection, call, sample_waiters_);
  if (sample_timer_) return;
  sample_timer_ = loop_.add_timer(latest, ports::Urgency::kClient, [this] { on_sample(); });
}

void RepeatedCalls::wait_for_move(ControlConnection& connection, const proto::Call& call) {
  add(connection, call, move_waiters_);
}

void RepeatedCalls::on_sample() {
  if (sample_waiters_.empty()) return;
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    sample_timer_.reset();
    repeat(std::exchange(sample_waiters_, {}));
  });
}

void RepeatedCalls::on_moved() {
  if (move_waiters_.empty()) return;
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) repeat(std::exchange(move_waiters_, {}));
  });
}

void RepeatedCalls::repeat(const Waiters& waiters) {
  for (const ControlConnection* const key : waiters) {
    ControlConnection* const connection = find_(key);
    if (!connection || !connection->waits_to_repeat) continue;
    connection->waits_to_repeat = false;
    repeat_(*connection);
  }
}

}  // namespace gpurota::daemon
