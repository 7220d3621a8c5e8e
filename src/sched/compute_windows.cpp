#include "sched/compute_windows.h"

#include <algorithm>
#include <utility>

namespace gpurota::sched {
namespace {

// Debts are forgotten when no window was used for this long.
constexpr Duration kForgotten = std::chrono::seconds(1);

}  // namespace

void ComputeWindows::set_parties(std::span<const Party> parties) {
  if (std::equal(parties.begin(), parties.end(), parties_.begin(), parties_.end())) return;
  std::vector<Books> books(parties.size());
  std::optional<std::size_t> holder;
  for (std::size_t i = 0; i < parties.size(); ++i) {
    for (std::size_t old = 0; old < parties_.size(); ++old) {
      if (parties_[old].id != parties[i].id) continue;
      books[i] = books_[old];
      if (holder_ == old) holder = i;
    }
  }
  parties_.assign(parties.begin(), parties.end());
  books_ = std::move(books);
  for (std::size_t i = 0; i < parties.size(); ++i) books_[i].bound.set(parties[i].most);
  holder_ = holder;
  if (!holder_) ending_.reset();
}

void ComputeWindows::set_bound(std::size_t index, const ComputeBound& bound) {
  books_[index].bound = bound;
  books_[index].bound.set(parties_[index].most);
}

bool ComputeWindows::wants(std::size_t index, TimePoint now) const {
  return books_[index].wanted != TimePoint() && now - books_[index].wanted < kPause;
}

bool ComputeWindows::is_endless(std::size_t index, TimePoint now) const {
  return books_[index].unended && now - *books_[index].unended >= kMostLate;
}

bool ComputeWindows::competes(std::size_t index, TimePoint now) const {
  return wants(index, now) && !is_bounded(index);
}

bool ComputeWindows::has_bounds() const {
  return std::any_of(parties_.begin(), parties_.end(),
                     [](const Party& party) { return party.most != 0; });
}

bool ComputeWindows::needs_windows(TimePoint now) const {
  int count = 0;
  bool share = false;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    if (!competes(i, now)) continue;
    ++count;
    share |= parties_[i].share;
  }
  return count >= 2 && share;
}

// Counts the time since the last step for the bounds, if there was work at its begin or end. The
// time in windows is counted by charge().
void ComputeWindows::count_bounds(TimePoint now, std::span<const State> states) {
  if (stepped_ == TimePoint()) stepped_ = now;
  const Duration past = std::clamp<Duration>(now - std::exchange(stepped_, now), {}, kMostSeen);
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    books_[i].bound.pass(past);
    const bool in_window = holder_ == i || books_[i].late;
    const bool worked = std::exchange(books_[i].busy, states[i].busy) || states[i].busy;
    if (worked && !in_window) books_[i].bound.charge(past);
    books_[i].bound.note(now, states[i].busy, states[i].waits);
  }
}

// When a bound next lets a party have the GPU, or no longer does.
std::optional<TimePoint> ComputeWindows::next_bound(TimePoint now) const {
  std::optional<TimePoint> next;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    if (!books_[i].bound.is_set() || !wants(i, now)) continue;
    const TimePoint when = now + books_[i].bound.left();
    next = std::min(next.value_or(when), when);
  }
  return next;
}

// The party that has had the least in proportion to its share, of those that want the GPU; of
// equals, the one whose last window began first.
std::size_t ComputeWindows::next(TimePoint now) const {
  const auto key = [this](std::size_t i) { return std::pair(books_[i].debt, books_[i].opened); };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    if (competes(i, now) && (!best || key(i) < key(*best))) best = i;
  }
  return best.value_or(0);
}

Duration ComputeWindows::length(std::size_t index, TimePoint now) const {
  int all = 0;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    all += competes(i, now) ? parties_[i].percent : 0;
  }
  return std::clamp(kCycle * parties_[index].percent / std::max(all, 1), kLeast, kMost);
}

// The time is owed to all parties that want the GPU, in proportion to their shares.
void ComputeWindows::charge(std::size_t index, Duration time, TimePoint now) {
  const auto takes_part = [&](std::size_t i) { return i == index || competes(i, now); };
  int all = 0;
  for (std::size_t i = 0; i < parties_.size(); ++i) all += takes_part(i) ? parties_[i].percent : 0;
  books_[index].charged += time;
  books_[index].bound.charge(time);
  books_[index].debt += time;
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    if (!takes_part(i)) continue;
    Duration& debt = books_[i].debt;
    debt = std::clamp(debt - time * parties_[i].percent / all, -kMostDebt, kMostDebt);
  }
}

void ComputeWindows::settle(TimePoint until, TimePoint now) {
  if (until <= settled_) return;
  int together = 1;
  for (const Books& books : books_) together += books.late ? 1 : 0;
  const Duration each = (until - settled_) / together;
  charge(*holder_, each, now);
  for (std::size_t i = 0; i < books_.size(); ++i) {
    if (books_[i].late) charge(i, each, now);
  }
  settled_ = until;
}

bool ComputeWindows::is_over(TimePoint now) const {
  if (now >= until_ || is_bounded(*holder_)) return true;
  if (now - begun_ < kLeast) return false;
  return books_[*holder_].debt - books_[next(now)].debt > kMuchLess;
}

void ComputeWindows::open(std::size_t index, TimePoint now) {
  books_[index].late = false;
  books_[index].opened = now;
  holder_ = index;
  ending_.reset();
  settled_ = begun_ = now;
  begun_working_ = false;
  until_ = now + length(index, now);
}

void ComputeWindows::stop(TimePoint now) {
  holder_.reset();
  ending_.reset();
  stopped_ = now;
  for (Books& books : books_) books.late = false;
}

std::optional<TimePoint> ComputeWindows::step(TimePoint now, std::span<const State> states) {
  settled_ = std::max(settled_, now - kMostSeen);
  count_bounds(now, states);
  for (std::size_t i = 0; i < parties_.size(); ++i) {
    Books& books = books_[i];
    if (states[i].busy || states[i].waits) books.wanted = now;
    if (!states[i].busy) books.unended.reset();
    if (!books.late || (states[i].busy && !is_endless(i, now))) continue;
    if (holder_) settle(now, now);
    books.late = false;
  }
  if (!holder_) {
    if (!needs_windows(now)) return next_bound(now);
    if (!stopped_ || now - *stopped_ > kForgotten) {
      for (Books& books : books_) books.debt = {};
    }
    open(next(now), now);
  } else {
    step_window(now, states);
  }
  const std::optional<TimePoint> bound = next_bound(now);
  if (!holder_) return bound;
  const TimePoint window =
      ending_ ? *ending_ + kLongestEnd : std::min(until_, books_[*holder_].wanted + kPause);
  return std::min(window, bound.value_or(window));
}

// A pause is not charged.
void ComputeWindows::step_window(TimePoint now, std::span<const State> states) {
  if (ending_) {
    const bool waits = states[*holder_].busy && !is_endless(*holder_, now);
    if (waits && now - *ending_ < kLongestEnd) return;
    return pass_on(now, states);
  }
  begun_working_ |= states[*holder_].busy || now - begun_ >= kPause;
  if (begun_working_) {
    settle(books_[*holder_].wanted, now);
  } else {
    settled_ = now;
  }
  if (!needs_windows(now)) return stop(now);
  if (wants(*holder_, now)) {
    if (!is_over(now)) return;
    if (next(now) == *holder_) return open(*holder_, now);
    ending_ = now;
    if (states[*holder_].busy) return;
  }
  pass_on(now, states);
}

// The window has ended.
void ComputeWindows::pass_on(TimePoint now, std::span<const State> states) {
  if (ending_) {
    settle(now, now);
    Books& books = books_[*holder_];
    if (states[*holder_].busy && !books.unended) books.unended = now;
    books.late = states[*holder_].busy && !is_endless(*holder_, now);
  }
  if (!needs_windows(now)) return stop(now);
  open(next(now), now);
}

}  // namespace gpurota::sched
