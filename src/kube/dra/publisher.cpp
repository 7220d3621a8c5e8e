#include "kube/dra/publisher.h"

#include "base/log.h"

#include <utility>

namespace gpurota::kube {
namespace {

constexpr Duration kFirstRetry = std::chrono::milliseconds(500),
                   kLongestRetry = std::chrono::seconds(30);
// The pause before the next watch or check: limits requests to a server that ends every watch.
constexpr Duration kWatchPause = std::chrono::milliseconds(500);
// Slices that stay unchanged for this long have settled.
constexpr Duration kSettled = std::chrono::minutes(2);

}  // namespace

Publisher::Publisher(Parts parts)
    : parts_(std::move(parts)),
      back_off_(kFirstRetry, kLongestRetry),
      random_(std::random_device{}()),
      watch_back_off_(kFirstRetry, kLongestRetry),
      change_back_off_(kFirstRetry, kLongestRetry) {}

void Publisher::want(std::vector<SliceDevice> devices) {
  if (devices == wanted_) return;
  wanted_ = std::move(devices);
  // After a failure keep the pause: frequent changes must not cause more requests to a server that
  // is away.
  if (!is_refused_) check_again();
}

void Publisher::check_again() {
  is_due_ = true;
  feed();
}

void Publisher::check_anew() {
  is_anew_ = true;
  check_again();
}

void Publisher::feed() {
  if (busy_ || !is_due_ || wanted_.empty()) return;
  if (std::exchange(is_anew_, false)) known_.takes_counters.reset();
  busy_ = true;
  is_due_ = false;
  stop_watch();
  parts_.worker.run([api = parts_.api, node = parts_.node, wanted = wanted_,
                     known = known_] { return publish_slices(*api, node, wanted, known); },
                    [this, devices = wanted_](Result<PublishedSlices> published) {
                      busy_ = false;
                      on_published(std::move(published), devices);
                    });
}

void Publisher::on_published(Result<PublishedSlices> published,
                             const std::vector<SliceDevice>& devices) {
  if (!published) {
    if (!std::exchange(is_refused_, true)) {
      log::warn("the node's devices are not published, trying again",
                {{"error", published.error().message}});
    }
    return arm(back_off_.next(random_()));
  }
  if (std::exchange(is_refused_, false) || published->generation != known_.generation) {
    log::info("the node's devices are published", {{"devices", devices.size()},
                                                   {"counters", published->counters ? "yes" : "no"},
                                                   {"generation", published->generation}});
  }
  known_ = std::move(*published);
  back_off_.reset();
  // The devices have changed during the write.
  if (wanted_ != devices || is_due_) return check_again();
  watch();
  // Random, so that not all nodes check at the same time.
  arm(parts_.review + parts_.review / 8 * static_cast<std::int64_t>(random_() % 8) / 8);
}

void Publisher::watch() {
  if (watching_ || busy_ || is_refused_ || known_.generation == 0) return;
  watching_ = true;
  watch_began_ = parts_.loop.now();
  watch_timer_.reset();
  stop_ = std::make_shared<std::atomic<bool>>(false);
  parts_.watcher.run([api = parts_.api, node = parts_.node, known = known_,
                      stop = stop_] { return wait_for_change(*api, node, known, *stop); },
                     [this](const Result<bool>& changed) {
                       watching_ = false;
                       on_watched(changed);
                     });
}

void Publisher::on_watched(const Result<bool>& changed) {
  if (!changed && !std::exchange(cannot_watch_, true)) {
    log::warn("the node's ResourceSlices cannot be watched, trying again",
              {{"error", changed.error().message}});
  }
  if (changed) {
    cannot_watch_ = false;
    watch_back_off_.reset();
  }
  if (*stop_) return watch();
  const bool has_changed = changed && *changed;
  if (has_changed && parts_.loop.now() - watch_began_ >= kSettled) change_back_off_.reset();
  const Duration pause = has_changed ? change_back_off_.next(random_())
                         : changed   ? kWatchPause
                                     : watch_back_off_.next(random_());
  watch_timer_ =
      parts_.loop.add_timer(parts_.loop.now() + pause, ports::Urgency::kHousekeeping,
                            [this, has_changed] { has_changed ? check_again() : watch(); });
}

void Publisher::arm(Duration pause) {
  timer_ = parts_.loop.add_timer(parts_.loop.now() + pause, ports::Urgency::kHousekeeping,
                                 [this] { check_again(); });
}

}  // namespace gpurota::kube
