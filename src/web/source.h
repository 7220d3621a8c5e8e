// The daemon's state for gpurota-web: the daemon is asked only when a client asks, and for its
// state at most once in a while, so that a flood of scrapes costs this process only. Any thread.
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
  // For all that is asked at once: whoever waits for it is not waited for twice as long
  // (http_server.h).
  static constexpr std::chrono::milliseconds kPatience{5000};

  explicit Source(client::Location location) : location_(std::move(location)) {}

  // Nothing: the daemon does not answer.
  std::optional<Snapshot> get();
  // Asks the daemon each time: the caller keeps the answer for a while.
  Result<proto::History::Reply> history(std::chrono::seconds since);
  Result<proto::Events::Reply> events(std::chrono::seconds since);
  Result<proto::Report::Reply> report(std::chrono::seconds since, const char* by);

 private:
  Result<Snapshot> ask();
  // Asks the next daemon if this one was restarted.
  template <class Method>
  Result<typename Method::Reply> call(const Method& params);

  client::Location location_;
  std::mutex mutex_;  // guards all below; others wait for the answer that one has asked for
  std::optional<client::Connection> connection_;
  std::optional<Snapshot> last_;
  std::optional<std::chrono::steady_clock::time_point> asked_;
};

}  // namespace gpurota::web
