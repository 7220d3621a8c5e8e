#include "daemon/control/repeated_calls.h"

#include <utility>

namespace gpurota::daemon {

RepeatedCalls::RepeatedCalls(ports::EventLoop& loop, Find find, Repeat repeat)
    : loop_(loop), find_(std::move(find)), repeat_(std::move(repeat)) {}

void RepeatedCalls::wait(ControlConnection& connection, const proto::Call& call, CallEvent event,
                         std::optional<TimePoint> latest) {
  connection.postponed = call;
  connection.waits_to_repeat = true;
  Waiters& waiters = waiters_[event];
  waiters.connections.push_back(&connection);
  if (!latest || waiters.timer) return;
  waiters.timer =
      loop_.add_timer(*latest, ports::Urgency::kClient, [this, event] { on_event(event); });
}

void RepeatedCalls::on_event(CallEvent event) {
  if (waiters_[event].connections.empty()) return;
  loop_.post([this, event, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    Waiters& waiters = waiters_[event];
    waiters.timer.reset();
    repeat(std::exchange(waiters.connections, {}));
  });
}

void RepeatedCalls::repeat(const std::vector<const ControlConnection*>& connections) {
  for (const ControlConnection* const key : connections) {
    ControlConnection* const connection = find_(key);
    if (!connection || !connection->waits_to_repeat) continue;
    connection->waits_to_repeat = false;
    repeat_(*connection);
  }
}

}  // namespace gpurota::daemon
