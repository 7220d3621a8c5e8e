// Compares two designs of the store: the state thread writes, as in the daemon, or a separate
// thread owns the database and writes. Measures the time to another thread and back, and how long
// clients wait. Part of store_bench.
#include "base/fd.h"
#include "daemon/history/steady_store.h"
#include "store/lease_tables.h"
#include "store/log_file.h"
#include "store/schema.h"
#include "store/store_mark.h"
#include "store_parts.h"
#include "sys/sd_event_loop.h"
#include "sys/worker.h"

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace gpurota {
namespace {

constexpr std::chrono::microseconds kPause{200};

// Threads that compute all the time.
class BusyThreads {
 public:
  explicit BusyThreads(std::int64_t count) {
    for (; count > 0; --count) {
      threads_.emplace_back([this] {
        while (!over_.load(std::memory_order_relaxed)) benchmark::ClobberMemory();
      });
    }
  }
  ~BusyThreads() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

// A condition variable to the other thread, and another one back.
void RoundTripCondition(benchmark::State& state) {
  const BusyThreads busy(state.range(0));
  std::mutex mutex;
  std::condition_variable there, back;
  enum { kRest, kAsked, kAnswered, kOver } now = kRest;
  std::thread other([&] {
    for (std::unique_lock lock(mutex);;) {
      there.wait(lock, [&] { return now == kAsked || now == kOver; });
      if (now == kOver) return;
      now = kAnswered;
      back.notify_one();
    }
  });
  Times times;
  for (auto _ : state) {
    std::this_thread::sleep_for(kPause);
    const auto begun = Clock::now();
    std::unique_lock lock(mutex);
    now = kAsked;
    there.notify_one();
    back.wait(lock, [&] { return now == kAnswered; });
    times.add(Clock::now() - begun);
  }
  {
    const std::lock_guard lock(mutex);
    now = kOver;
  }
  there.notify_one();
  other.join();
  times.report(state, "");
}

void RoundTripEventfd(benchmark::State& state) {
  const BusyThreads busy(state.range(0));
  const Fd there(::eventfd(0, EFD_CLOEXEC)), back(::eventfd(0, EFD_CLOEXEC));
  std::atomic<bool> over{false};
  const auto give = [](const Fd& fd) { (void)!::eventfd_write(fd.get(), 1); };
  const auto take = [](const Fd& fd) {
    eventfd_t value = 0;
    (void)!::eventfd_read(fd.get(), &value);
  };
  std::thread other([&] {
    for (;;) {
      take(there);
      if (over) return;
      give(back);
    }
  });
  Times times;
  for (auto _ : state) {
    std::this_thread::sleep_for(kPause);
    const auto begun = Clock::now();
    give(there);
    take(back);
    times.add(Clock::now() - begun);
  }
  over = true;
  give(there);
  other.join();
  times.report(state, "");
}

// As in the daemon: to a worker, and back to the event loop.
void RoundTripWorker(benchmark::State& state) {
  const BusyThreads busy(state.range(0));
  const auto loop = good(sys::SdEventLoop::make());
  sys::Worker worker(*loop, "bench");
  Times times;
  for (auto _ : state) {
    std::this_thread::sleep_for(kPause);
    const auto begun = Clock::now();
    worker.run([] { return 0; },
               [&, begun](int) {
                 times.add(Clock::now() - begun);
                 loop->stop();
               });
    good(loop->run());
  }
  times.report(state, "");
}
BENCHMARK(RoundTripCondition)->ArgName("busy")->Arg(0)->Arg(2)->Iterations(2000)->UseRealTime();
BENCHMARK(RoundTripEventfd)->ArgName("busy")->Arg(0)->Arg(2)->Iterations(2000)->UseRealTime();
BENCHMARK(RoundTripWorker)->ArgName("busy")->Arg(0)->Arg(2)->Iterations(2000)->UseRealTime();

using Done = std::function<void()>;

class Design {
 public:
  virtual ~Design() = default;
  // Stores a lease. Calls `done` on the loop when the lease is on the disk.
  virtual void store(const ports::StoredLease& lease, Done done) = 0;
};

// The state thread writes, a worker waits for the disk.
class StateThreadWrites final : public Design {
 public:
  StateThreadWrites(ports::EventLoop& loop, const std::string& folder)
      : database_(good(store::SqliteStore::open(folder))), store_(loop, *database_) {
    store_.durability().on_news([this](const ports::Durability::News& news) {
      while (!waiting_.empty() && waiting_.front().first <= news.upto) {
        const Done done = std::move(waiting_.front().second);
        waiting_.pop_front();
        done();
      }
    });
  }
  ~StateThreadWrites() override { store_.durability().on_news({}); }
  void store(const ports::StoredLease& lease, Done done) override {
    good(store_.save_lease(lease));
    waiting_.emplace_back(store_.durability().made(), std::move(done));
  }

 private:
  std::unique_ptr<store::SqliteStore> database_;
  daemon::SteadyStore store_;
  std::deque<std::pair<std::uint64_t, Done>> waiting_;
};

// A thread owns the database, and takes all changes that wait. `together`: stores them in one
// transaction.
class WriterThread final : public Design {
 public:
  WriterThread(ports::EventLoop& loop, const std::string& folder, bool together)
      : loop_(loop),
        together_(together),
        database_(good(store::Database::open(folder + "/gpurota.db"))),
        log_(database_.path(), folder + "/store.mark") {
    good(store::upgrade_schema(database_));
    good(store::replace_mark(folder + "/store.mark", {1, {}}));
    log_.begin_marks({1, {}});
    database_.watch_commits([this](std::uint64_t frames) { log_.on_commit(frames); });
    thread_ = std::thread([this] { work(); });
  }
  ~WriterThread() override {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void store(const ports::StoredLease& lease, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      changes_.push_back({lease, std::move(done)});
    }
    changed_.notify_one();
  }

 private:
  struct Change {
    ports::StoredLease lease;
    Done done;
  };
  void work() {
    for (std::vector<Change> taken;; taken.clear()) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return over_ || !changes_.empty(); });
        if (over_) return;
        taken.swap(changes_);
      }
      write(taken);
      good(log_.sync());
      loop_.post([taken = std::move(taken)] {
        for (const Change& change : taken) change.done();
      });
    }
  }
  void write(const std::vector<Change>& changes) {
    std::optional<store::Transaction> all;
    if (together_) all.emplace(good(store::Transaction::begin(database_)));
    for (const Change& change : changes) {
      std::optional<store::Transaction> one;
      if (!together_) one.emplace(good(store::Transaction::begin(database_)));
      good(tables_.write(change.lease));
      if (one) good(one->commit());
    }
    if (all) good(all->commit());
  }

  ports::EventLoop& loop_;
  const bool together_;
  store::Database database_;
  store::LogFile log_;
  store::LeaseTables tables_{database_};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Change> changes_;
  bool over_ = false;
  std::thread thread_;
};

Clock::duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Clients that each ask for a lease, wait for the answer, and ask again.
class Clients {
 public:
  Clients(sys::SdEventLoop& loop, Design& design, std::uint64_t answers)
      : loop_(loop), design_(design), answers_(answers) {}
  void ask() {
    const auto begun = Clock::now();
    design_.store(bench_lease(++asked_), [this, begun] {
      waited.add(Clock::now() - begun);
      if (++answered_ == answers_) loop_.stop();
      if (asked_ < answers_) loop_.post([this] { ask(); });
    });
    occupied.add(Clock::now() - begun);
  }
  Times waited, occupied;

 private:
  sys::SdEventLoop& loop_;
  Design& design_;
  const std::uint64_t answers_;
  std::uint64_t asked_ = 0, answered_ = 0;
};

// "waits_": how long a client waits. "occupied_": how long a call occupies the state thread.
void clients(benchmark::State& state, int design) {
  constexpr std::uint64_t kAnswers = 1000;
  for (auto _ : state) {
    const BenchFolder folder;
    const auto loop = good(sys::SdEventLoop::make());
    std::unique_ptr<Design> chosen;
    if (design == 0) {
      chosen = std::make_unique<StateThreadWrites>(*loop, folder.path());
    } else {
      chosen = std::make_unique<WriterThread>(*loop, folder.path(), design == 2);
    }
    Clients all(*loop, *chosen, kAnswers);
    for (std::int64_t i = 0; i < state.range(0); ++i) loop->post([&] { all.ask(); });
    const auto begun = Clock::now();
    const auto before = processor_time();
    good(loop->run());
    state.counters["answers/s"] = kAnswers * 1e6 / microseconds(Clock::now() - begun);
    state.counters["state_cpu"] = microseconds(processor_time() - before) / kAnswers;
    all.waited.report(state, "waits_");
    all.occupied.report(state, "occupied_");
  }
}
void ClientsNow(benchmark::State& state) { clients(state, 0); }
void ClientsWriter(benchmark::State& state) { clients(state, 1); }
void ClientsWriterTogether(benchmark::State& state) { clients(state, 2); }

#define GPUROTA_CLIENTS(name) \
  BENCHMARK(name)->ArgName("clients")->Arg(1)->Arg(8)->Arg(64)->Iterations(1)->UseRealTime()
GPUROTA_CLIENTS(ClientsNow);
GPUROTA_CLIENTS(ClientsWriter);
GPUROTA_CLIENTS(ClientsWriterTogether);

}  // namespace
}  // namespace gpurota
