// Sends notices to users by the channels that [notify] names: selects kinds, bounds how much each
// user gets, keeps a short queue for each channel, and logs failures. Never waits. State thread
// only.
#pragma once

#include "config/config.h"
#include "core/time.h"
#include "daemon/notices/channels.h"
#include "daemon/notices/notice.h"
#include "daemon/notices/notice_rates.h"
#include "ports/event_loop.h"
#include "ports/processes.h"
#include "ports/program_runner.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

namespace gpurota::daemon {

class Notifier final : public NoticeListener {
 public:
  static constexpr int kMostAtOnce = 2;            // programs of a channel
  static constexpr std::size_t kMostWaiting = 64;  // when full, the user with most loses one
  static constexpr std::size_t kMostWaitingOfUser = 16;
  // The time between two lines in the log about a channel that fails repeatedly.
  static constexpr Duration kLogPause = std::chrono::minutes(10);

  // All must outlive the Notifier.
  struct Parts {
    ports::EventLoop& loop;
    ports::ProgramRunner* runner;  // null: nothing is sent
    ports::Processes& processes;   // for names
    const config::Config& config;
    std::function<WallTime()> wall_clock;
  };

  explicit Notifier(Parts parts) : parts_(std::move(parts)) {}

  void on_notice(const Notice& notice) override;

  // Called with the result of a test by one channel.
  using Tested = std::function<void(Channel channel, const ports::ProgramEnd& end)>;
  // kUnavailable: no channel is named. kLimit: the user has already had as many tests as are
  // allowed.
  Result<void> check_test(const Notice& notice);
  // Sends the notice by each channel, and returns the number of channels. `tested` is called for
  // each channel, later.
  std::size_t test(const Notice& notice, const Tested& tested);

 private:
  struct Letter {
    proto::Notice notice;
    Tested tested;  // empty: no test
  };
  struct Line {
    std::deque<Letter> waiting;
    int running = 0;
    std::uint64_t failures = 0;  // in a row
    std::uint64_t unlogged = 0;  // failures since the last line of the log
    std::uint64_t dropped = 0;   // since the queue was empty
    TimePoint told_at{};
  };

  bool is_in_use() const;
  proto::Notice written(const Notice& notice) const;
  void send(const Notice& notice);
  void add(Channel channel, Letter letter);
  void drop(Channel channel, const Letter& letter);
  void go_on(Channel channel);
  void over(Channel channel, const Letter& letter, const ports::ProgramEnd& end);
  void log_end(Channel channel, const ports::ProgramEnd& end);
  void arm();

  Parts parts_;
  NoticeRates rates_;
  std::map<Channel, Line> lines_;
  ports::EventLoop::SourcePtr timer_;  // for notices that were kept back
};

// "exit status 3 after 12 ms: cannot open …": how a program ended, for people.
std::string end_text(const ports::ProgramEnd& end);

}  // namespace gpurota::daemon
