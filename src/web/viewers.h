// Viewers: connections that stay open and get each new state of the machine as an event
// (text/event-stream). Each state is made once for all viewers. A slow viewer misses states, and is
// dropped when it has read nothing for kPatience. Their number is limited: the group with the most
// viewers loses its oldest to make room for others. Used by HttpServer, on its thread; never waits.
#pragma once

#include "web/stream.h"

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

namespace gpurota::web {

class Viewers {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 200;
  static constexpr std::chrono::seconds kPatience{15};
  // The time between two states. The page considers the connection broken after four of them
  // (page/live.ts).
  static constexpr std::chrono::milliseconds kPeriod{2000};

  explicit Viewers(std::size_t most = kMost) : most_(most) {}

  // Whether there is a free place, or another group has the most viewers and must give one up.
  bool has_room(const std::string& group) const;
  bool is_empty() const { return viewers_.empty(); }
  std::size_t size() const { return viewers_.size(); }

  // Adds a viewer and sends `head` first. Call it only if has_room() holds for this group
  // (Visitor::group).
  void add(Stream socket, std::string group, std::string head, Clock::time_point now);
  // Sends the event to all viewers. A viewer that has not read the last event yet gets this one
  // later, or a newer one.
  void show(std::string event, Clock::time_point now);

  // Appends the descriptors to poll; on_polled() takes their results from the same position.
  void add_polled(std::vector<pollfd>& polled) const;
  void on_polled(std::vector<pollfd>::const_iterator results, Clock::time_point now);
  // When the next viewer that reads nothing is dropped.
  Clock::time_point next_deadline() const;

 private:
  struct Viewer {
    Stream socket;
    std::string group{};
    std::string head{};
    std::shared_ptr<const std::string> sending{};  // the event that is being sent
    std::size_t sent = 0;                          // bytes sent of the head or of the event
    std::shared_ptr<const std::string> next{};     // the newest event, sent after it
    Clock::time_point taken_at{};                  // when the viewer last read something
  };

  std::string who_has_most(const std::string& group) const;
  static bool has_more(const Viewer& viewer) { return !viewer.head.empty() || viewer.sending; }
  static void send(Viewer& viewer, Clock::time_point now);
  static void read(Viewer& viewer);
  void remove_closed();

  std::size_t most_;
  std::list<Viewer> viewers_;
  std::shared_ptr<const std::string> last_;
};

}  // namespace gpurota::web
