// The daemon's event loop, built on sd-event (libsystemd). See ports/event_loop.h for the contract.
#pragma once

#include "base/fd.h"
#include "ports/event_loop.h"
#include "sys/poll_set.h"
#include "sys/round_times.h"
#include "sys/timer_queue.h"

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

struct sd_event;

namespace gpurota::sys {

class SdEventLoop final : public ports::EventLoop {
 public:
  static Result<std::unique_ptr<SdEventLoop>> make();
  ~SdEventLoop() override;
  SdEventLoop(const SdEventLoop&) = delete;
  SdEventLoop& operator=(const SdEventLoop&) = delete;

  Result<SourcePtr> watch_fd(int fd, bool writable, ports::Urgency urgency,
                             std::function<void(unsigned events)> callback) override;
  SourcePtr add_timer(TimePoint when, ports::Urgency urgency,
                      std::function<void()> callback) override;
  // Call it before other threads start: they inherit the blocked signal.
  Result<SourcePtr> on_signal(int signal, std::function<void()> callback) override;
  void post(std::function<void()> task) override;
  TimePoint now() const override;
  // May be called again after stop(). If stop() is called before run(), run() returns at once.
  Result<void> run() override;
  void stop() override { stopped_ = true; }

  // The longest finished rounds, without the waiting between them.
  LongestRounds longest_rounds() const { return rounds_.longest(now()); }

  // Notifies systemd's watchdog, if the unit has one, that the loop runs. kIo if that fails.
  Result<void> enable_watchdog();

 private:
  struct Registration;
  class SdSource;
  SdEventLoop(sd_event* event, Fd wake);
  Result<SourcePtr> watch_one(int fd, bool writable, ports::Urgency urgency,
                              std::function<void(unsigned events)> callback);
  void run_posted();
  int run_round();

  sd_event* event_;
  bool stopped_ = false;
  RoundTimes rounds_;
  Fd wake_;  // an eventfd: written when tasks have been posted
  SourcePtr wake_source_;
  std::array<std::unique_ptr<TimerQueue>, 4> timers_;  // by urgency
  std::unique_ptr<PollSet> clients_;                   // descriptors of Urgency::kClient
  SourcePtr clients_source_;
  std::mutex mutex_;
  std::deque<std::function<void()>> posted_;  // guarded by mutex_
};

}  // namespace gpurota::sys
