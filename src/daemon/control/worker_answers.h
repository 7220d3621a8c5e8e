// Answers that are made on a worker of the user who asked (Outcome::on_worker). A slow answer
// delays only other answers to the same user. State thread only.
#pragma once

#include "ports/event_loop.h"
#include "sys/user_workers.h"

#include <functional>
#include <string>

namespace gpurota::daemon {

struct ControlConnection;

class WorkerAnswers {
 public:
  // Called with the answer if the connection still exists. May end the connection.
  using Done = std::function<void(ControlConnection& connection, const std::string& answer)>;

  // `loop` must outlive this.
  WorkerAnswers(ports::EventLoop& loop, Done done);

  // Calls `make` on the worker of the connection's user, and then `done` with the result. Until
  // then `connection.on_worker` is set. False: nothing was begun, because answers for too many
  // users are being made already.
  bool begin(ControlConnection& connection, std::function<std::string()> make);

 private:
  Done done_;
  sys::UserWorkers workers_;
};

}  // namespace gpurota::daemon
