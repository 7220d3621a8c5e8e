#include "interposer/gate/bursts.h"

#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

namespace gpurota::interposer {
namespace {

constexpr uint32_t kEventTries = 8;
constexpr uint32_t kRefreshEvery = 16;

bool is_busy(uint32_t word) { return (word & 1) != 0; }
// Whether count `a` is beyond count `b`, modulo 2^32.
bool is_after(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

}  // namespace

uint32_t Bursts::find(uint64_t stream) const {
  const uint32_t used = used_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    if (streams_[i].key.load(std::memory_order_relaxed) == stream) return i;
  }
  return kStreams - 1;
}

uint32_t Bursts::find_or_add(uint64_t stream) {
  const uint32_t found = find(stream);
  if (found != kStreams - 1) return found;
  for (uint32_t i = 0; i < kStreams - 1; ++i) {
    uint64_t nobody = 0;
    if (!streams_[i].key.compare_exchange_strong(nobody, stream) && nobody != stream) continue;
    uint32_t used = used_.load();
    while (used <= i && !used_.compare_exchange_weak(used, i + 1)) {
    }
    return i;
  }
  return kStreams - 1;
}

bool Bursts::submit(std::atomic<uint32_t>* word, uint64_t stream) {
  const uint32_t before = streams_[find_or_add(stream)].submitted.fetch_add(1);
  uint32_t seen = word->load();
  if (!is_busy(seen) && word->compare_exchange_strong(seen, seen + 1)) {
    bursts_.fetch_add(1, std::memory_order_relaxed);
  }
  return before % kRefreshEvery == kRefreshEvery - 1;
}

void Bursts::refresh(std::atomic<uint32_t>* word, int64_t now_us) {
  if (now_us - refreshed_us_.load(std::memory_order_relaxed) < kRefreshUs) return;
  refreshed_us_.store(now_us, std::memory_order_relaxed);
  uint32_t seen = word->load();
  if (is_busy(seen)) word->compare_exchange_strong(seen, seen + 2);
}

StreamMark Bursts::mark(uint64_t stream) const {
  const uint32_t index = find(stream);
  return {index, streams_[index].submitted.load()};
}

void Bursts::mark_all(AllMarks* out) const {
  out->count = kStreams;
  for (uint32_t i = 0; i < kStreams; ++i) out->submitted[i] = streams_[i].submitted.load();
}

void Bursts::raise(uint32_t stream, uint32_t submitted) {
  std::atomic<uint32_t>& ended = streams_[stream].ended;
  uint32_t seen = ended.load();
  while (is_after(submitted, seen) && !ended.compare_exchange_weak(seen, submitted)) {
  }
}

bool Bursts::is_idle() const {
  const uint32_t used = used_.load();
  const auto ended = [](const Stream& s) { return s.ended.load() == s.submitted.load(); };
  for (uint32_t i = 0; i < used; ++i) {
    if (!ended(streams_[i])) return false;
  }
  return ended(streams_[kStreams - 1]);
}

// A submission that comes between the two checks finds the word odd and does not change it. The
// second check sees that submission.
void Bursts::end_if_idle(std::atomic<uint32_t>* word) {
  uint32_t seen = word->load();
  if (!is_busy(seen) || !is_idle() || !word->compare_exchange_strong(seen, seen + 1)) return;
  if (!is_idle()) {
    seen = word->load();
    if (!is_busy(seen)) word->compare_exchange_strong(seen, seen + 1);
    return;
  }
  futex_wake_shared(word, INT32_MAX);
}

void Bursts::ended(std::atomic<uint32_t>* word, const StreamMark& mark) {
  raise(mark.stream, mark.submitted);
  end_if_idle(word);
}

void Bursts::all_ended(std::atomic<uint32_t>* word, const AllMarks& marks) {
  for (uint32_t i = 0; i < marks.count; ++i) raise(i, marks.submitted[i]);
  end_if_idle(word);
}

void Bursts::forget(std::atomic<uint32_t>* word, uint64_t stream) {
  const uint32_t index = find(stream);
  if (index == kStreams - 1) return;
  Stream& gone = streams_[index];
  gone.ended.store(gone.submitted.load());
  gone.key.store(0);
  end_if_idle(word);
}

void Bursts::record(uint64_t event, uint64_t stream) {
  const StreamMark at = mark(stream);
  const uint64_t home = mix_key(event);
  Event* place = &events_[home % kEvents];
  for (uint32_t i = 0; i < kEventTries; ++i) {
    Event& tried = events_[(home + i) % kEvents];
    const uint64_t key = tried.key.load(std::memory_order_relaxed);
    if (key != 0 && key != event) continue;
    place = &tried;
    break;
  }
  place->key.store(event);
  place->mark.store(uint64_t{at.submitted} << 32 | at.stream);
}

bool Bursts::find_event(uint64_t event, StreamMark* out) const {
  const uint64_t home = mix_key(event);
  for (uint32_t i = 0; i < kEventTries; ++i) {
    const Event& tried = events_[(home + i) % kEvents];
    if (tried.key.load() != event) continue;
    const uint64_t mark = tried.mark.load();
    *out = {static_cast<uint32_t>(mark), static_cast<uint32_t>(mark >> 32)};
    return true;
  }
  return false;
}

}  // namespace gpurota::interposer
