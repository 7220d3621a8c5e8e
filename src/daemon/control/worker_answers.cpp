#include "daemon/control/worker_answers.h"

#include "daemon/control/control_connection.h"
#include "daemon/control/memory_shortage.h"

#include <memory>
#include <utility>

namespace gpurota::daemon {

WorkerAnswers::WorkerAnswers(ports::EventLoop& loop, Done done)
    : done_(std::move(done)), workers_(loop, "logs", "the logs of jobs and fillers") {}

bool WorkerAnswers::begin(ControlConnection& connection, std::function<std::string()> make) {
  workers_.tidy();
  connection.on_worker = std::make_shared<ControlConnection*>(&connection);
  const auto done = [this, asked = std::weak_ptr(connection.on_worker)](const std::string& reply) {
    const auto there = asked.lock();
    if (!there) return;
    ControlConnection& of = **there;
    of.on_worker.reset();
    done_(of, reply);
  };
  const bool begun = workers_.run(
      connection.caller.uid,
      [make = std::move(make)]() -> std::string { return answer_within_memory(make); }, done);
  if (!begun) connection.on_worker.reset();
  return begun;
}

}  // namespace gpurota::daemon
