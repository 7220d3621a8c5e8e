#include "daemon/history/series_keeper.h"

#include "base/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace gpurota::daemon {
namespace {

using series::Entry;
using Clock = std::chrono::milliseconds;

// Figures are stored with the first sample after this time. Samples are a second apart, so figures
// are stored within 10 s.
constexpr Duration kFlushPeriod = std::chrono::milliseconds(8500);
// Samples are taken this long after a second has begun.
constexpr Clock kOffset{100};
constexpr std::chrono::milliseconds kLastPatience{2000};

std::uint64_t mebibytes(Bytes bytes) { return bytes.count() >> 20U; }

void put(Entry& entry, std::size_t column, std::optional<std::int64_t> value) {
  if (value && *value >= 0) entry.values[column] = static_cast<std::uint64_t>(*value);
}

// Puts the value into two columns: the average, and the most of a single sample.
void put_level(Entry& entry, std::size_t column, std::optional<std::int64_t> value) {
  put(entry, column, value);
  put(entry, column + 1, value);
}

template <class Number>
std::optional<std::int64_t> scaled(std::optional<Number> value, std::int64_t by,
                                   std::int64_t divisor = 1) {
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value) * by / divisor;
}

}  // namespace

SeriesKeeper::SeriesKeeper(Parts parts)
    : parts_(std::move(parts)), worker_(parts_.loop, "history") {}

SeriesKeeper::~SeriesKeeper() {
  if (!parts_.store || !loaded_ || storing_) return;
  worker_.run_and_wait(
      kLastPatience,
      [store = parts_.store, rows = rings_.take_changed()] { return store->save(rows); },
      [](const Result<void>&) {});
}

void SeriesKeeper::start() {
  stored_at_ = parts_.loop.now();
  load();
  sample();
}

void SeriesKeeper::on_sample(const GpuUuid& gpu, std::map<LeaseId, Bytes> used,
                             std::optional<std::map<LeaseId, int>> loads) {
  seen_[gpu] = {std::move(used), std::move(loads)};
}

// Samples once in each second of the wall clock, however late a timer is.
void SeriesKeeper::schedule() {
  const Clock in_second(parts_.wall_clock().time_since_epoch().count() % 1000);
  const Clock second(1000);
  const Clock wait = second - in_second + kOffset;
  timer_ = parts_.loop.add_timer(parts_.loop.now() + wait, ports::Urgency::kHousekeeping,
                                 [this] { sample(); });
}

void SeriesKeeper::sample() {
  std::vector<Entry> entries;
  loads_.clear();
  holders_.clear();
  std::vector<Entry> leases;
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    const auto seen = seen_.find(gpu.info.uuid);
    if (seen == seen_.end() || !seen->second.loads) continue;
    for (const auto& [lease, load] : *seen->second.loads) loads_[lease] += load;
  }
  add_leases(leases);
  for (const GpuEntry& gpu : parts_.gpus.entries()) {
    if (gpu.sample.error.empty() && gpu.taken != TimePoint{}) entries.push_back(gpu_entry(gpu));
  }
  entries.insert(entries.end(), leases.begin(), leases.end());
  rings_.add(parts_.wall_clock(), std::move(entries));
  if (parts_.loop.now() - stored_at_ >= kFlushPeriod) store_changes();
  schedule();
}

Entry SeriesKeeper::gpu_entry(const GpuEntry& gpu) {
  Entry entry;
  const GpuFigures& figures = gpu.figures;
  entry.subject = series::subject_of(gpu.info.uuid);
  put_level(entry, series::kLoad, scaled(gpu.sample.load_percent, 10));
  if (const auto used = memory_in_use(gpu.info, gpu.sample))
    put_level(entry, series::kMemory, static_cast<std::int64_t>(mebibytes(*used)));
  put_level(entry, series::kPower, scaled(figures.power_mw, 1, 100));
  put_level(entry, series::kHeat, scaled(figures.temperature, 10));
  put(entry, series::kClock, scaled(figures.sm_clock_mhz, 1));
  put(entry, series::kLimits, scaled(figures.clock_limits, 1));
  put(entry, series::kEcc, scaled(figures.ecc_uncorrected, 1));
  if (figures.xid_errors) {
    std::uint64_t& before = xid_errors_[gpu.info.uuid];
    entry.values[series::kXid] = *figures.xid_errors - std::min(before, *figures.xid_errors);
    before = *figures.xid_errors;
  }
  const auto holder = holders_.find(gpu.info.uuid);
  if (holder != holders_.end()) entry.values[series::kHolder] = holder->second.value;
  return entry;
}

void SeriesKeeper::add_leases(std::vector<Entry>& entries) {
  std::map<LeaseId, Before> before = std::exchange(before_, {});
  std::map<uid_t, std::size_t> of_user;
  std::vector<std::pair<std::size_t, Entry>> ranked;  // first: how many older leases its user has
  for (const auto& [id, lease] : parts_.tables.leases) {
    Entry entry;
    entry.subject = series::subject_of(id);
    std::optional<Bytes> used;  // on the lease's GPUs with a good sample
    for (const LeaseGpu& share : lease.lease.gpus) {
      const auto seen = seen_.find(share.uuid);
      if (seen == seen_.end()) continue;
      const auto at = seen->second.used.find(id);
      used = used.value_or(Bytes()) + (at == seen->second.used.end() ? Bytes() : at->second);
    }
    if (used) put_level(entry, series::kUsed, static_cast<std::int64_t>(mebibytes(*used)));
    const auto load = loads_.find(id);
    if (load != loads_.end()) put_level(entry, series::kSm, std::int64_t{load->second} * 10);
    before_[id] = before[id];
    add_turns(lease, entry);
    ranked.emplace_back(of_user[lease.lease.uid]++, entry);
  }
  // A row has room for kMostLeases. The newest leases of users with many leases are left out first.
  if (ranked.size() > series::kMostLeases) {
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    ranked.resize(series::kMostLeases);
  }
  for (auto& each : ranked) entries.push_back(std::move(each.second));
}

void SeriesKeeper::add_turns(const LeaseEntry& lease, Entry& entry) {
  const auto figures = parts_.turn_of(lease.lease.id);
  if (!figures) return;
  Before& before = before_[lease.lease.id];
  const bool grows = figures->out > before.out;
  entry.values[series::kEvictions] = grows && !before.grew ? 1 : 0;
  before = {figures->out, grows};
  entry.values[series::kWaited] = figures->waits ? 1000 : 0;
  if (!figures->holds) return;
  for (const LeaseGpu& share : lease.lease.gpus) holders_[share.uuid] = lease.lease.id;
}

void SeriesKeeper::load() {
  if (!parts_.store) return;
  storing_ = true;
  worker_.run([store = parts_.store] { return store->load(); },
              [this](Result<ports::LoadedSeries> loaded) { on_loaded(std::move(loaded)); });
}

void SeriesKeeper::on_loaded(Result<ports::LoadedSeries> loaded) {
  storing_ = false;
  if (!loaded) return set_error(loaded.error());
  loaded_ = true;
  if (!loaded->trouble.empty()) {
    trouble_ = std::move(loaded->trouble);
    log::warn("the history begins anew", {{"reason", trouble_}});
  }
  rings_.restore(std::move(loaded->rows), parts_.wall_clock());
}

void SeriesKeeper::store_changes() {
  if (!parts_.store || storing_) return;
  stored_at_ = parts_.loop.now();
  if (!loaded_) return load();
  storing_ = true;
  auto rows = std::make_shared<std::vector<SeriesRow>>(rings_.take_changed());
  worker_.run([store = parts_.store, rows] { return store->save(*rows); },
              [this, rows](const Result<void>& stored) { on_stored(*rows, stored); });
}

void SeriesKeeper::on_stored(const std::vector<SeriesRow>& rows, const Result<void>& stored) {
  storing_ = false;
  if (stored) {
    if (error_) log::info("the history can be stored again");
    error_.reset();
    return;
  }
  rings_.put_back(rows);
  loaded_ = false;  // the file may be replaced before the next attempt
  set_error(stored.error());
}

void SeriesKeeper::set_error(const Error& error) {
  if (!error_) {
    log::warn("the history cannot be stored, trying again", {{"error", error.message}});
  }
  error_ = error;
}

}  // namespace gpurota::daemon
