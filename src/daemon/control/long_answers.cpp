#include "daemon/control/long_answers.h"

#include "daemon/control/control_connection.h"

#include <utility>

namespace gpurota::daemon {

void LongAnswers::begin(ControlConnection& connection, std::shared_ptr<LongAnswer> work) {
  connection.long_answer = std::move(work);
  waiting_[connection.caller.uid].push_back(&connection);
}

bool LongAnswers::is_first(const ControlConnection& connection) const {
  return waiting_.at(connection.caller.uid).front() == &connection;
}

const ControlConnection* LongAnswers::end(ControlConnection& connection) {
  if (!connection.long_answer) return nullptr;
  connection.long_answer.reset();
  const auto mine = waiting_.find(connection.caller.uid);
  const bool first = mine->second.front() == &connection;
  std::erase(mine->second, &connection);
  if (mine->second.empty()) {
    waiting_.erase(mine);
    return nullptr;
  }
  return first ? mine->second.front() : nullptr;
}

}  // namespace gpurota::daemon
