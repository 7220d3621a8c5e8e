#include "daemon/history/disk_waits.h"

#include "base/log.h"

#include <algorithm>
#include <utility>

namespace gpurota::daemon {

DiskWaits::DiskWaits(ports::EventLoop& loop, store::SqliteStore& store)
    : loop_(loop), store_(store), worker_(loop, "store") {}

DiskWaits::~DiskWaits() {
  if (running_.valid()) running_.wait();
  settling_ = false;
  if (auto written = catch_up(); !written) {
    log::error("the last changes are not stored", {{"error", written.error().message}});
  }
}

void DiskWaits::on_change() {
  ++made_;
  begin_soon();
}

void DiskWaits::keep(Change change) {
  kept_.push_back(std::move(change));
  on_change();
}

Result<void> DiskWaits::catch_up() {
  while (!kept_.empty()) {
    GPUROTA_TRY(kept_.front()());
    kept_.pop_front();
  }
  return {};
}

void DiskWaits::settle() {
  wants_settling_ = true;
  begin_soon();
}

// Begins in a later round of the loop, so that all changes of a call share a wait.
void DiskWaits::begin_soon() {
  if (posted_ || running_.valid()) return;
  posted_ = true;
  loop_.post([this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    posted_ = false;
    begin();
  });
}

void DiskWaits::begin() {
  if (running_.valid()) return;
  if (auto written = catch_up(); !written) return tell(made_, written.error());
  if (std::exchange(wants_settling_, false) && store_.needs_settling()) {
    const auto numbers = store_.numbers();
    if (numbers) {
      numbers_ = *numbers;
      return run(true);
    }
  }
  if (told_ < made_) run(false);
}

void DiskWaits::run(bool settle) {
  settling_ = settle;
  const auto over = std::make_shared<std::promise<void>>();
  running_ = over->get_future().share();
  worker_.run(
      [store = &store_, settle, over] {
        auto done = settle ? store->settle() : store->sync();
        over->set_value();
        return done;
      },
      [this, settle, upto = made_](const Result<void>& done) { finish(settle, upto, done); });
}

void DiskWaits::finish(bool settled, std::uint64_t upto, const Result<void>& done) {
  running_ = {};
  settling_ = false;
  if (settled) (void)catch_up();  // after a failure, begin() tries again, and reports the failure
  if (settled && !done) {
    // Not reported as an error here: the daemon's own check of the store reports it.
    log::debug("the state cannot be settled now, trying again", {{"error", done.error().message}});
    tell(told_, error_);  // the store is open again, and the disk has no more than before
  } else if (!done) {
    // Which part of the log is on the disk is unknown, so the log is moved into the database as
    // soon as possible.
    wants_settling_ = true;
    log::error("changes are stored, but the disk may not have them",
               {{"error", done.error().message}});
    tell(upto, done.error());
  } else {
    tell(upto, std::nullopt);
  }
  if (told_ < made_) begin_soon();
}

void DiskWaits::tell(std::uint64_t upto, std::optional<Error> error) {
  told_ = std::max(told_, upto);
  error_ = std::move(error);
  if (listener_) listener_({upto, error_});
}

}  // namespace gpurota::daemon
