// Those who watch: connections that stay and get each new state of the machine as an event
// (text/event-stream). Each state is made once for all of them. One that does not read what it is
// sent misses states, and is dropped when it has taken nothing for kPatience. So many at a time and
// no more: of who has most the oldest makes room for others. Used by HttpServer, on its thread;
// never waits.
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
  // Between two states. The page calls the connection broken after four of them (page/live.ts).
  static constexpr std::chrono::milliseconds kPeriod{2000};

  explicit Viewers(std::size_t most = kMost) : most_(most) {}

  // Whether there is a place, or whoever of another group has most makes room.
  bool has_room(const std::string& group) const;
  bool is_empty() const { return viewers_.empty(); }
  std::size_t size() const { return viewers_.size(); }

  // `head` goes first. Only if there is room for one of this group (Visitor::group).
  void add(Stream socket, std::string group, std::string head, Clock::time_point now);
  // To all; who has not taken the last one yet gets it later, or a newer one.
  void show(std::string event, Clock::time_point now);

  // Appends what is to be polled, and takes the results from there on.
  void add_polled(std::vector<pollfd>& polled) const;
  void on_polled(std::vector<pollfd>::const_iterator results, Clock::time_point now);
  // When a viewer is dropped if it takes nothing until then.
  Clock::time_point next_deadline() const;

 private:
  struct Viewer {
    Stream socket;
    std::string group{};
    std::string head{};
    std::shared_ptr<const std::string> sending{};  // the event that is partly sent, or about to be
    std::size_t sent = 0;                          // of head and sending together
    std::shared_ptr<const std::string> next{};     // instead of those between
    Clock::time_point taken_at{};                  // since when nothing of what waits was taken
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
