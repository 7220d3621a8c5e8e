// How long the store occupies the state thread: a lease, an event and an item of a job; pieces of
// merging, removing and reading usage; and what a worker waits for.
//
//   store_bench                      on the file system of /tmp
//   TMPDIR=/dev/shm store_bench      on tmpfs
//
// Counters are in microseconds; "Time" and "CPU" include the pauses between changes.
#include "daemon/history/event_spill.h"
#include "store/sqlite_store.h"
#include "store_parts.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace gpurota {
namespace {

using ports::StoredUsage;
using std::chrono::minutes;

constexpr int kChanges = 1000;
constexpr std::uint64_t kEvents = 10000;  // in the store
constexpr std::uint64_t kRows = 20000;    // of usage of one user, by default
constexpr std::size_t kPiece = 64;        // as in UsageTidier
constexpr std::chrono::microseconds kPause{200};

std::unique_ptr<store::SqliteStore> open(const BenchFolder& folder) {
  return good(store::SqliteStore::open(folder.path()));
}

// Waits for the disk whenever something was stored, as the daemon's worker does.
class DiskThread {
 public:
  DiskThread(store::SqliteStore& store, bool works) {
    if (!works) return;
    thread_ = std::thread([this, &store] {
      for (int seen = 0; !over_; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
        if (const int now = changes_; now != std::exchange(seen, now)) good(store.sync());
      }
    });
  }
  ~DiskThread() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void on_change() { ++changes_; }

 private:
  std::atomic<int> changes_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

// Makes changes, one after the other. range(0): whether a thread waits for the disk meanwhile.
void measure(benchmark::State& state, store::SqliteStore& store,
             const std::function<void(std::uint64_t)>& change) {
  good(store.settle());
  DiskThread disk(store, state.range(0) != 0);
  Times times;
  std::uint64_t number = 0;
  for (auto _ : state) {
    const auto begun = Clock::now();
    change(++number);
    times.add(Clock::now() - begun);
    disk.on_change();
    std::this_thread::sleep_for(kPause);
  }
  times.report(state, "");
}

void NumberLease(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  measure(state, *store, [&](std::uint64_t) { good(store->next_lease_id()); });
}

void StoreLease(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  measure(state, *store,
          [&](std::uint64_t number) { good(store->save_lease(bench_lease(number))); });
}

void RemoveLease(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  for (std::uint64_t i = 1; i <= kChanges; ++i) good(store->save_lease(bench_lease(i)));
  measure(state, *store, [&](std::uint64_t number) { good(store->remove_lease({number})); });
}

ports::StoredEvent event(std::uint64_t id) {
  ports::StoredEvent event;
  event.id = id;
  event.type = "lease_made";
  event.lease = LeaseId{id};
  event.gpu_index = 0;
  event.gpu.value = "GPU-00000000-0000-0000-0000-000000000000";
  event.uid = 1000;
  event.message = "alice has 8 GiB of GPU 0 for 'python train.py --epochs 90'";
  return event;
}

// An event, and the removal of the oldest one.
void StoreEvent(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  ports::HistoryBatch old;
  for (std::uint64_t i = 1; i <= kEvents; ++i) old.events.push_back(event(i));
  good(store->save(old));
  measure(state, *store, [&](std::uint64_t number) {
    ports::HistoryBatch batch;
    batch.events.push_back(event(kEvents + number));
    batch.forgotten.push_back(number);
    good(store->save(batch));
  });
}

// The same event, added to the file that keeps events until the store has them.
void SpillEvent(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  auto spill = good(daemon::EventSpill::open(folder.path() + "/events"));
  measure(state, *store, [&](std::uint64_t number) { spill.add(event(number)); });
}

// An item of an array of 10,000.
void StoreItem(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  std::vector<ports::StoredItem> items;
  const std::string boot = "00000000-0000-0000-0000-000000000000";
  for (int i = 0; i < 10000; ++i) items.push_back({i, std::string(120, 'x'), boot});
  good(store->save_items(1, items, true));
  measure(state, *store, [&](std::uint64_t number) {
    const auto index = static_cast<std::int64_t>(number * 7919 % 10000);
    good(store->save_items(1, {{index, std::string(120, 'y'), boot}}, false));
  });
}

#define GPUROTA_CHANGE(name) \
  BENCHMARK(name)->ArgName("disk")->Arg(0)->Arg(1)->Iterations(kChanges)->UseRealTime()
GPUROTA_CHANGE(NumberLease);
GPUROTA_CHANGE(StoreLease);
GPUROTA_CHANGE(RemoveLease);
GPUROTA_CHANGE(StoreEvent);
GPUROTA_CHANGE(SpillEvent);
GPUROTA_CHANGE(StoreItem);

// The wait of a worker after each change.
void WaitForDisk(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  Times times;
  std::uint64_t number = 0;
  for (auto _ : state) {
    good(store->save_lease(bench_lease(++number)));
    const auto begun = Clock::now();
    good(store->sync());
    times.add(Clock::now() - begun);
  }
  times.report(state, "");
}
BENCHMARK(WaitForDisk)->Iterations(300)->UseRealTime();

// How long the worker has the store to itself after a minute with this many new leases.
void Settle(benchmark::State& state) {
  const BenchFolder folder;
  const auto store = open(folder);
  Times times;
  std::uint64_t number = 0;
  for (auto _ : state) {
    for (int i = 0; i < state.range(0); ++i) good(store->save_lease(bench_lease(++number)));
    good(store->sync());
    const auto begun = Clock::now();
    good(store->settle());
    times.add(Clock::now() - begun);
  }
  times.report(state, "");
}
BENCHMARK(Settle)->Arg(10)->Arg(1000)->Iterations(20)->UseRealTime();

// Stores leases without settling until the log has 10,000 frames. Only the change that adds the
// last frame is timed, because SQLite moves the log into the database in that change. The counter
// "frames" is the mean number of frames in the log for each lease.
void FillLog(benchmark::State& state) {
  constexpr std::uintmax_t kFrame = 4096 + 24, kFrames = 10000;
  Times times;
  for (auto _ : state) {
    const BenchFolder folder;
    const auto store = open(folder);
    const auto frames = [log = folder.path() + "/gpurota.db-wal"] {
      return std::filesystem::file_size(log) / kFrame;
    };
    Clock::duration last{};
    std::uint64_t number = 0;
    while (frames() < kFrames) {
      const auto begun = Clock::now();
      good(store->save_lease(bench_lease(++number)));
      last = Clock::now() - begun;
      if (number % 20 == 0) good(store->sync());
    }
    times.add(last);
    state.counters["frames"] = static_cast<double>(kFrames) / static_cast<double>(number);
  }
  times.report(state, "");
}
BENCHMARK(FillLog)->Iterations(5)->UseRealTime();

// Stores leases of nine minutes on one GPU. Merging makes one row of the leases of an hour.
void store_usage(store::SqliteStore& store) {
  ports::HistoryBatch batch;
  for (std::uint64_t i = 1; i <= kRows; ++i) {
    StoredUsage& row = batch.usage.emplace_back();
    row.lease.value = i;
    row.gpu.value = "GPU-00000000-0000-0000-0000-000000000000";
    row.uid = 1000;
    row.group = "students";
    row.kind = "run";
    row.note = "for Thursday's talk";
    row.since = WallTime(minutes(29'000'000 + 10 * i));
    row.until = row.since + minutes(9);
    row.gpu_ms = 540'000;
  }
  good(store.save(batch));
  good(store.settle());
}

using Piece = std::function<bool(store::SqliteStore&)>;  // false: this was the last piece

// One user has `kRows` rows. Each piece is one turn of the loop, and a pause follows.
void pieces(benchmark::State& state, const Piece& piece) {
  const BenchFolder folder;
  const auto store = open(folder);
  store_usage(*store);
  DiskThread disk(*store, true);
  Times times;
  bool more = true;
  for (auto _ : state) {
    if (!more) break;
    const auto begun = Clock::now();
    more = piece(*store);
    times.add(Clock::now() - begun);
    disk.on_change();
    std::this_thread::sleep_for(kPause);
  }
  times.report(state, "");
}

void MergeUsage(benchmark::State& state) {
  ports::UsageMerge merge{1000, std::chrono::hours(1), {}, kPiece, {}};
  pieces(state, [&](store::SqliteStore& store) {
    const auto merged = good(store.merge_usage(merge));
    if (merged.fewer == 0) merge.after = merged.upto;
    return true;
  });
}
void PruneUsage(benchmark::State& state) {
  const WallTime end(minutes(29'000'000 + 10 * kRows));
  pieces(state, [&](store::SqliteStore& store) { return good(store.prune_usage(end, kPiece)); });
}
void ReadUsage(benchmark::State& state) {
  LeaseId after{};
  pieces(state, [&](store::SqliteStore& store) {
    const auto rows = good(store.read_usage(after, kPiece));
    if (!rows.empty()) after = rows.back().lease;
    return !rows.empty();
  });
}
void CountUsage(benchmark::State& state) {
  pieces(state, [](store::SqliteStore& store) { return good(store.count_usage(1000)) > 0; });
}
// For a limit on GPU hours: all rows at once.
void SumUsage(benchmark::State& state) {
  const WallTime end(minutes(29'000'000 + 10 * kRows));
  pieces(state, [&](store::SqliteStore& store) {
    benchmark::DoNotOptimize(good(store.sum_usage_of(1000, WallTime{}, end)));
    return true;
  });
}
// The usual case: nothing is old enough, so no row is removed.
void PruneNothing(benchmark::State& state) {
  pieces(state, [](store::SqliteStore& store) {
    good(store.prune_usage(WallTime{}, kPiece));
    return true;
  });
}
BENCHMARK(MergeUsage)->Iterations(250)->UseRealTime();
BENCHMARK(PruneUsage)->Iterations(250)->UseRealTime();
BENCHMARK(PruneNothing)->Iterations(100)->UseRealTime();
BENCHMARK(ReadUsage)->Iterations(250)->UseRealTime();
BENCHMARK(CountUsage)->Iterations(100)->UseRealTime();
BENCHMARK(SumUsage)->Iterations(50)->UseRealTime();

}  // namespace
}  // namespace gpurota
