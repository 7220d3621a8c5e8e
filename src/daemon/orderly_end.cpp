#include "daemon/orderly_end.h"

#include "base/log.h"

#include <chrono>
#include <utility>

namespace gpurota::daemon {
namespace {

// How long the end waits for answers that wait for the disk, and how often it checks for them.
constexpr std::chrono::milliseconds kAnswerPatience{1000};
constexpr std::chrono::milliseconds kAnswerPeriod{5};

}  // namespace

void OrderlyEnd::begin(std::function<void()> done) {
  if (done_) return done();
  done_ = std::move(done);
  go_on(loop_.now() + kAnswerPatience);
}

void OrderlyEnd::go_on(TimePoint deadline) {
  const auto running_timer = std::move(timer_);  // keeps this callback alive while it runs
  const bool owes = control_.finish();
  // Calls that have come by now are served first, because this timer is the least urgent.
  timer_ = loop_.add_timer(owes ? loop_.now() + kAnswerPeriod : loop_.now(),
                           ports::Urgency::kHousekeeping, [this, deadline] {
                             if (!control_.finish() || loop_.now() >= deadline) return end();
                             go_on(deadline);
                           });
}

void OrderlyEnd::end() {
  if (const auto saved = roster_.save(grants_, loop_.now()); !saved) {
    log::warn("cannot store which programs are connected; they will wait for reconnect_grace",
              {{"error", saved.error().message}});
  }
  done_();
}

}  // namespace gpurota::daemon
