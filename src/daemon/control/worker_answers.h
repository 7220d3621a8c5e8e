// Answers that are made on a worker of the user who asked (Outcome::on_worker): one that takes long
// delays that user's others, and nobody else. State thread only.
#pragma once

#include "ports/event_loop.h"
#include "sys/user_workers.h"

#include <functional>
#include <string>

namespace gpurota::daemon {

struct ControlConnection;

class WorkerAnswers {
 public:
  // Has the answer to a connection that is still there. May end the connection.
  using Done = std::function<void(ControlConnection& connection, const std::string& answer)>;

  // `loop` outlives this.
  WorkerAnswers(ports::EventLoop& loop, Done done);

  // Has `make` called on the worker of the connection's user, and `done` with what it returns.
  // Until then `connection.on_worker` is set. False: too many users have such answers made, and
  // nothing was begun.
  bool begin(ControlConnection& connection, std::function<std::string()> make);

 private:
  Done done_;
  sys::UserWorkers workers_;
};

}  // namespace gpurota::daemon
