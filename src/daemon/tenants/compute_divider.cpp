#include "daemon/tenants/compute_divider.h"

#include "base/threads.h"
#include "sys/clock.h"
#include "sys/shared_page.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace gpurota::daemon {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How often the states of tenants are read: while at most one party wants the GPU, while the time
// is divided or a party with an upper bound may work, and while a window waits for the end of its
// work or for its first work.
constexpr Duration kIdle = milliseconds(3), kDivided = milliseconds(1), kSoon = microseconds(50);
// Closed windows are refreshed this often: libraries ignore a `window` word that is odd (closed)
// and has not changed for 250 ms.
constexpr Duration kRefresh = milliseconds(50);

std::uint32_t load(const std::uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }
bool is_odd(std::uint32_t word) { return (word & 1) != 0; }

// A tenant that writes to the word itself only changes when its own submissions wait.
void set_window(gpurota_page& page, bool open, bool refresh) {
  std::uint32_t& word = page.grant[0].window;
  const std::uint32_t seen = load(word);
  if (is_odd(seen) == open) {
    __atomic_store_n(&word, seen + 1, __ATOMIC_RELEASE);
    if (open) sys::wake_waiters(word);
  } else if (!open && refresh) {
    __atomic_store_n(&word, seen + 2, __ATOMIC_RELEASE);
  }
}

std::vector<sched::ComputeWindows::State> states_of(
    const std::vector<ComputeUses::Processes>& parties) {
  std::vector<sched::ComputeWindows::State> states;
  for (const ComputeUses::Processes& processes : parties) {
    sched::ComputeWindows::State& state = states.emplace_back();
    for (const ComputeUses::Process& process : processes) {
      state.busy |= process.busy;
      state.waits |= process.waits;
    }
  }
  return states;
}

}  // namespace

ComputeDivider::~ComputeDivider() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Reads what the processes of each party say of themselves.
std::vector<ComputeUses::Processes> ComputeDivider::read(const Gpu& gpu, TimePoint now) {
  std::vector<ComputeUses::Processes> parties;
  for (const Party& party : gpu.parties) {
    ComputeUses::Processes& processes = parties.emplace_back();
    for (const Process& process : party.processes) {
      Seen& seen = seen_[process.page];
      const std::uint32_t word = load(process.page->work);
      if (word != seen.word) seen = {word, now};
      processes.push_back({.lease = process.lease,
                           .busy = is_odd(word) && now - seen.since < kStale,
                           .waits = load(process.page->waiting) != 0});
    }
  }
  return parties;
}

// A lease keeps what it owes while it is not a party: when its processes end and begin again, and
// while it is parked.
void ComputeDivider::keep_bounds(TimePoint now) {
  for (const auto& [uuid, gpu] : gpus_) {
    const auto& parties = gpu.windows.parties();
    for (std::size_t i = 0; i < parties.size(); ++i) {
      if (parties[i].most != 0) kept_[parties[i].id] = {gpu.windows.bound(i), now};
    }
  }
}

sched::ComputeBound ComputeDivider::Kept::at(TimePoint now) const {
  sched::ComputeBound later = bound;
  if (since != now) later.settle();
  later.pass(now - since);
  return later;
}

void ComputeDivider::restore_bounds(TimePoint now) {
  std::set<std::uint64_t> restored;
  for (auto& [uuid, gpu] : gpus_) {
    const auto& parties = gpu.windows.parties();
    for (std::size_t i = 0; i < parties.size(); ++i) {
      const auto kept = kept_.find(parties[i].id);
      if (kept == kept_.end() || parties[i].most == 0) continue;
      gpu.windows.set_bound(i, kept->second.at(now));
      restored.insert(parties[i].id);
    }
  }
  std::erase_if(kept_, [&](const auto& each) {
    return restored.contains(each.first) || each.second.at(now).is_full();
  });
}

Result<void> ComputeDivider::set(Gpus gpus) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = sys::monotonic_now();
  keep_bounds(now);
  for (auto& [uuid, gpu] : gpus_) gpu.uses.count(gpu.windows, read(gpu, now), now);
  std::set<const gpurota_page*> named;
  for (const auto& [uuid, parties] : gpus) {
    for (const Party& party : parties) {
      for (const Process& process : party.processes) named.insert(process.page);
    }
  }
  for (auto& [uuid, gpu] : gpus_) {
    for (const Party& party : gpu.parties) {
      for (const Process& process : party.processes) {
        if (!named.contains(process.page)) set_window(*process.page, true, false);
      }
    }
    gpu.parties.clear();
  }
  std::erase_if(seen_, [&](const auto& each) { return !named.contains(each.first); });
  for (auto& [uuid, parties] : gpus) {
    Gpu& gpu = gpus_[uuid];
    gpu.parties = std::move(parties);
  }
  std::erase_if(gpus_, [](const auto& each) { return each.second.parties.empty(); });
  for (auto& [uuid, gpu] : gpus_) {
    std::vector<sched::ComputeWindows::Party> terms;
    for (const Party& party : gpu.parties) terms.push_back(party.terms);
    gpu.windows.set_parties(terms);
    gpu.uses.set_parties(gpu.windows, read(gpu, now), now);
  }
  restore_bounds(now);
  if (gpus_.empty()) return {};
  if (!thread_.joinable()) {
    auto thread = start_thread([this] { run(); });
    if (!thread) {
      gpus_.clear();
      return tl::unexpected(std::move(thread).error());
    }
    thread_ = std::move(*thread);
  }
  changed_.notify_all();
  return {};
}

// Writes the windows of one GPU.
void ComputeDivider::show(Gpu& gpu, TimePoint now) {
  const bool refresh = now - gpu.refreshed >= kRefresh;
  if (refresh) gpu.refreshed = now;
  for (std::size_t i = 0; i < gpu.parties.size(); ++i) {
    for (const Process& process : gpu.parties[i].processes) {
      set_window(*process.page, gpu.windows.is_open(i), refresh);
    }
  }
}

std::optional<TimePoint> ComputeDivider::step(TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::optional<TimePoint> next;
  const auto at_latest = [&next](TimePoint when) { next = std::min(next.value_or(when), when); };
  for (auto& [uuid, gpu] : gpus_) {
    const std::vector<ComputeUses::Processes> parties = read(gpu, now);
    gpu.uses.count(gpu.windows, parties, now);
    const std::vector<sched::ComputeWindows::State> states = states_of(parties);
    const auto decided = gpu.windows.step(now, states);
    if (decided) at_latest(*decided);
    show(gpu, now);
    const bool wanted = std::any_of(states.begin(), states.end(),
                                    [](const auto& state) { return state.busy || state.waits; });
    const bool counts = gpu.windows.divides() || (wanted && gpu.windows.has_bounds());
    at_latest(now + (gpu.windows.is_changing() ? kSoon : counts ? kDivided : kIdle));
  }
  return next;
}

std::optional<LastMinute> ComputeDivider::last_minute(LeaseId lease) const {
  const std::lock_guard lock(mutex_);
  const TimePoint now = sys::monotonic_now();
  for (const auto& [uuid, gpu] : gpus_) {
    if (auto minute = gpu.uses.last_minute(lease, now)) return minute;
  }
  return std::nullopt;
}

void ComputeDivider::run() {
  for (;;) {
    const auto next = step(sys::monotonic_now());
    std::unique_lock lock(mutex_);
    if (stop_) return;
    if (!next) {
      changed_.wait(lock, [this] { return stop_ || !gpus_.empty(); });
    } else {
      changed_.wait_until(lock, *next);
    }
  }
}

}  // namespace gpurota::daemon
