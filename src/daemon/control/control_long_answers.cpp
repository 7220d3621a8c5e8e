// What takes more than one turn: streams of answers, and answers that are made a piece at a time. Part of control_server.cpp.
#include "daemon/control/control_connection.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {

bool ControlServer::has_work(const Connection& connection) const {
  if (connection.stream) return !connection.stream_waits;
  const bool open = !parts_.durability || parts_.durability->is_open();
  if (connection.long_answer) {
    return open && long_answers_.at(connection.caller.uid).front() == &connection;
  }
  return connection.postponed ? open : connection.in.has_next();
}

void ControlServer::go_on_streaming(Connection& connection) {
  const auto message = connection.stream->next();
  if (message) answer(connection, *message);
  connection.stream_waits = !message;
  if (connection.stream->over()) connection.stream.reset();
}

void ControlServer::on_event() {
  if (news_posted_) return;
  news_posted_ = true;
  // Not here: this may run inside a call, and several news come together.
  parts_.loop.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    news_posted_ = false;
    std::vector<const Connection*> streaming;
    for (const auto& [key, connection] : connections_) {
      if (connection->stream) streaming.push_back(key);
    }
    for (const Connection* key : streaming) {
      const auto it = connections_.find(key);
      if (it == connections_.end()) continue;
      it->second->stream_waits = false;
      resume(key);
    }
  });
}

void ControlServer::begin_long_answer(Connection& connection, std::shared_ptr<LongAnswer> work) {
  connection.long_answer = std::move(work);
  long_answers_[connection.caller.uid].push_back(&connection);
}

void ControlServer::go_on_answering(Connection& connection) {
  const auto message = connection.long_answer->go_on();
  if (!message) return;
  end_long_answer(connection);
  answer(connection, *message);
}

void ControlServer::end_long_answer(Connection& connection) {
  if (!connection.long_answer) return;
  connection.long_answer.reset();
  const auto mine = long_answers_.find(connection.caller.uid);
  const bool first = mine->second.front() == &connection;
  std::erase(mine->second, &connection);
  if (mine->second.empty()) {
    long_answers_.erase(mine);
  } else if (first) {
    resume_soon(*mine->second.front());
  }
}

}  // namespace gpurota::daemon
