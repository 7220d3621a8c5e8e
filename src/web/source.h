// The daemon's state for gpurota-web. The daemon is asked only when a client asks, and for its
// state at most once in a while, so that a flood of scrapes loads this process only. Any thread.
#pragma once

#include "client/locate.h"
#include "web/metrics.h"

#include <chrono>
#include <mutex>
#include <optional>

namespace gpurota::web {

class Source {
 public:
  static constexpr std::chrono::milliseconds kAge{1000};
  // The time limit for all calls of one request together, so that a client does not wait twice as
  // long (http_server.h).
  static constexpr std::chrono::milliseconds kPatience{5000};

  explicit Source(client::Location location) : location_(std::move(location)) {}

  // nullopt: the daemon does not answer.
  std::optional<Snapshot> get();
  // Asks the daemon each time: the caller caches the answer.
  Result<proto::History::Reply> history(std::chrono::seconds since);
  Result<proto::Events::Reply> events(std::chrono::seconds since);
  Result<proto::Report::Reply> report(std::chrono::seconds since, const char* by);

 private:
  Result<Snapshot> ask();
  // Connects again if the daemon has restarted.
  template <class Method>
  Result<typename Method::Reply> call(const Method& params);

  client::Location location_;
  std::mutex mutex_;  // guards the members below; others wait for the one call
  std::optional<client::Connection> connection_;
  std::optional<Snapshot> last_;
  std::optional<std::chrono::steady_clock::time_point> asked_;
};

}  // namespace gpurota::web
