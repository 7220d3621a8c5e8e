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
// is divided, and while a window waits for the end of its work or for its first work.
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

}  // namespace

ComputeDivider::~ComputeDivider() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

sched::ComputeWindows::State ComputeDivider::state_of(const Party& party, TimePoint now) {
  sched::ComputeWindows::State state;
  for (const gpurota_page* const page : party.pages) {
    Seen& seen = seen_[page];
    const std::uint32_t word = load(page->work);
    if (word != seen.word) seen = {word, now};
    state.busy |= is_odd(word) && now - seen.since < kStale;
    state.waits |= load(page->waiting) != 0;
  }
  return state;
}

Result<void> ComputeDivider::set(Gpus gpus) {
  const std::lock_guard lock(mutex_);
  std::set<const gpurota_page*> named;
  for (const auto& [uuid, parties] : gpus) {
    for (const Party& party : parties) named.insert(party.pages.begin(), party.pages.end());
  }
  for (auto& [uuid, gpu] : gpus_) {
    for (const Party& party : gpu.parties) {
      for (gpurota_page* const page : party.pages) {
        if (!named.contains(page)) set_window(*page, true, false);
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
  }
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

// Writes the windows of one GPU. True: some of them are closed.
bool ComputeDivider::show(Gpu& gpu, TimePoint now) {
  const bool refresh = now - gpu.refreshed >= kRefresh;
  if (refresh) gpu.refreshed = now;
  for (std::size_t i = 0; i < gpu.parties.size(); ++i) {
    for (gpurota_page* const page : gpu.parties[i].pages) {
      set_window(*page, gpu.windows.is_open(i), refresh);
    }
  }
  return gpu.windows.divides();
}

std::optional<TimePoint> ComputeDivider::step(TimePoint now) {
  const std::lock_guard lock(mutex_);
  std::optional<TimePoint> next;
  const auto at_latest = [&next](TimePoint when) { next = std::min(next.value_or(when), when); };
  for (auto& [uuid, gpu] : gpus_) {
    std::vector<sched::ComputeWindows::State> states;
    for (const Party& party : gpu.parties) states.push_back(state_of(party, now));
    const auto decided = gpu.windows.step(now, states);
    if (decided) at_latest(*decided);
    const bool divides = show(gpu, now);
    at_latest(now + (gpu.windows.is_changing() ? kSoon : divides ? kDivided : kIdle));
  }
  return next;
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
