// Calls whose outcome was not known when they came, and which are repeated after an event: a sample
// of a GPU (Outcome::again_after_sample), or a move of a process into its cgroup
// (Outcome::again_after_move). State thread only.
#pragma once

#include "core/time.h"
#include "daemon/control/control_connection.h"
#include "ports/event_loop.h"
#include "proto/codec.h"

#include <functional>
#include <memory>
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

  // Lets the call of the connection wait for the next sample, but not beyond `latest`.
  void wait_for_sample(ControlConnection& connection, const proto::Call& call, TimePoint latest);
  // Lets the call of the connection wait for the next move.
  void wait_for_move(ControlConnection& connection, const proto::Call& call);

  // Repeat the calls that wait for the event, once the loop has handled the event.
  void on_sample();
  void on_moved();

 private:
  using Waiters = std::vector<const ControlConnection*>;  // some may have ended
  void add(ControlConnection& connection, const proto::Call& call, Waiters& waiters);
  void repeat(const Waiters& waiters);

  ports::EventLoop& loop_;
  Find find_;
  Repeat repeat_;
  Waiters sample_waiters_, move_waiters_;
  // Repeats the calls at `latest`, as a GPU whose driver hangs gives no sample.
  ports::EventLoop::SourcePtr sample_timer_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // expires with this: for posted functions
};

}  // namespace gpurota::daemon
