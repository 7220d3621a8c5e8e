// Brings notices to users by the channels that [notify] names: chooses by kind, bounds what each
// user gets, keeps a short queue for each channel, and logs what fails. Never waits. State thread
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
  static constexpr std::size_t kMostWaiting = 64;  // beyond that the user with most has one dropped
  static constexpr std::size_t kMostWaitingOfUser = 16;
  // Between two lines of the log about a channel that goes on failing.
  static constexpr Duration kLogPause = std::chrono::minutes(10);

  // All must outlive the Notifier.
  struct Parts {
    ports::EventLoop& loop;
    ports::ProgramRunner* runner;  // null: nothing is brought anywhere
    ports::Processes& processes;   // for names
    const config::Config& config;
    std::function<WallTime()> wall_clock;
  };

  explicit Notifier(Parts parts) : parts_(std::move(parts)) {}

  void on_notice(const Notice& notice) override;

  // Called with the result of a test by one channel.
  using Tested = std::function<void(Channel channel, const ports::ProgramEnd& end)>;
  // kUnavailable: no channel is named. kLimit: this user has had enough of them.
  Result<void> check_test(const Notice& notice);
  // By each channel; how many there are. `tested` is called for each of them, later.
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
    std::uint64_t untold = 0;    // of them, since the log was told
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
  ports::EventLoop::SourcePtr timer_;  // for what was kept back
};

// "exit status 3 after 12 ms: cannot open …": how a program ended, for people.
std::string end_text(const ports::ProgramEnd& end);

}  // namespace gpurota::daemon
