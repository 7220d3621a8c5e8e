// Calls whose outcome was not known when they came, and which are repeated after an event
// (Outcome::again_after). State thread only.
#pragma once

#include "core/time.h"
#include "daemon/control/call_handler.h"
#include "daemon/control/control_connection.h"
#include "ports/event_loop.h"
#include "proto/codec.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gpurota::daemon {

class RepeatedCalls {
 public:
  // Continues with a connection whose `postponed` call may be made again.
  using Repeat = std::function<void(ControlConnection& connection)>;
  // The connection with this address; null: it has ended.
  using Find = std::function<ControlConnection*(const ControlConnection* key)>;

  // `loop` must outlive this.
  RepeatedCalls(ports::EventLoop& loop, Find find, Repeat repeat);

  // Lets the call of the connection wait for the next event of this kind, but not beyond `latest`,
  // as the event may never come: a GPU whose driver hangs gives no sample. Empty: for however long
  // that takes.
  void wait(ControlConnection& connection, const proto::Call& call, CallEvent event,
            std::optional<TimePoint> latest = std::nullopt);

  // Repeats the calls that wait for the event, once the loop has handled the event.
  void on_event(CallEvent event);

 private:
  struct Waiters {
    std::vector<const ControlConnection*> connections;  // some may have ended
    ports::EventLoop::SourcePtr timer;                  // at the first `latest`
  };
  void repeat(const std::vector<const ControlConnection*>& connections);

  ports::EventLoop& loop_;
  Find find_;
  Repeat repeat_;
  std::map<CallEvent, Waiters> waiters_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // expires with this: for posted functions
};

}  // namespace gpurota::daemon
