// Waits for the disk on behalf of the store, so that the state thread never waits. State thread
// only.
//
// A worker waits until the changes are on the disk. All changes during a wait share the next wait
// (group commit). Each minute the store is settled, which takes several waits. Only the worker may
// use the store meanwhile (is_open() is false): changes are kept in memory, in order, and written
// afterwards.
#pragma once

#include "ports/durability.h"
#include "ports/event_loop.h"
#include "store/sqlite_store.h"
#include "sys/worker.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>

namespace gpurota::daemon {

class DiskWaits final : public ports::Durability {
 public:
  using Change = std::function<Result<void>()>;

  // Both must outlive the DiskWaits.
  DiskWaits(ports::EventLoop& loop, store::SqliteStore& store);
  // Waits for the disk, so that all changes are in the store.
  ~DiskWaits() override;

  // Call after each change.
  void on_change();
  // Keeps a change while the store is not open. The change is made when the store is open again.
  void keep(Change change);
  // Makes the changes that were kept. Call before any other change.
  Result<void> catch_up();
  // Calls store::SqliteStore::settle() as soon as nothing else waits for the disk.
  void settle();
  // The last number given to a lease, a request, a job and a filler, for use while the store is not
  // open.
  store::SqliteStore::Numbers& numbers() { return numbers_; }

  std::uint64_t made() const override { return made_; }
  std::uint64_t told() const override { return told_; }
  bool is_open() const override { return !settling_; }
  void on_news(std::function<void(const News&)> listener) override {
    listener_ = std::move(listener);
  }

 private:
  void begin_soon();
  void begin();
  void run(bool settle);
  void finish(bool settled, std::uint64_t upto, const Result<void>& done);
  void tell(std::uint64_t upto, std::optional<Error> error);

  ports::EventLoop& loop_;
  store::SqliteStore& store_;
  std::function<void(const News&)> listener_;
  std::deque<Change> kept_;
  store::SqliteStore::Numbers numbers_;
  std::uint64_t made_ = 0;
  std::uint64_t told_ = 0;
  std::optional<Error> error_;  // of the last news
  bool posted_ = false;         // begin() is posted
  bool settling_ = false;       // only the worker may use the database
  bool wants_settling_ = false;
  std::shared_future<void> running_;  // valid while the worker is at work
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  sys::Worker worker_;
};

}  // namespace gpurota::daemon
