#include "interposer/gate/bursts.h"

#include "interposer/os/sys.h"
#include "interposer/os/va_map.h"

namespace gpurota::interposer {
namespace {

constexpr uint32_t kEventTries = 8;

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

uint32_t Bursts::add(uint64_t stream, const StreamTraits& traits) {
  const Lock lock(mutex_);
  const uint32_t found = find(stream);
  if (found != kStreams - 1) return found;
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < kStreams - 1; ++i) {
    if (streams_[i].key.load() != 0) continue;
    streams_[i].context.store(traits.context);
    streams_[i].blocking.store(traits.is_blocking);
    streams_[i].key.store(stream);
    if (i >= used) used_.store(i + 1, std::memory_order_release);
    return i;
  }
  return kStreams - 1;
}

bool Bursts::count(std::atomic<uint32_t>* word, uint32_t index, int64_t now_us) {
  streams_[index].last_us.store(now_us, std::memory_order_relaxed);
  streams_[index].submitted.fetch_add(1);
  uint32_t seen = word->load();
  if (is_busy(seen)) {
    refresh(word, now_us);
    return false;
  }
  if (!word->compare_exchange_strong(seen, seen + 1)) return false;
  refreshed_us_.store(now_us, std::memory_order_relaxed);
  bursts_.fetch_add(1, std::memory_order_relaxed);
  return true;
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

// A stream that is not meant gets a mark that ends nothing.
void Bursts::mark_all(Which which, uint64_t context, AllMarks* out) const {
  for (uint32_t i = 0; i < kStreams; ++i) {
    const Stream& stream = streams_[i];
    const bool shared = i == kStreams - 1;
    const bool meant = (shared || stream.context.load() == context) &&
                       (which == Which::kAll || stream.blocking.load());
    out->submitted[i] = meant ? stream.submitted.load() : stream.ended.load();
  }
}

bool Bursts::has_ended(const StreamMark& mark) const {
  return !is_after(mark.submitted, streams_[mark.stream].ended.load());
}

void Bursts::raise(const StreamMark& mark) {
  std::atomic<uint32_t>& ended = streams_[mark.stream].ended;
  uint32_t seen = ended.load();
  while (is_after(mark.submitted, seen) && !ended.compare_exchange_weak(seen, mark.submitted)) {
  }
}

// Each join is used once, so there are at most kJoins marks to follow.
void Bursts::raise_joined(const StreamMark& mark) {
  raise(mark);
  if (joined_.load() == 0) return;
  const Lock lock(mutex_);
  StreamMark known[kJoins + 1] = {mark};
  uint32_t left = joined_.load();
  for (uint32_t next = 0, found = 1; next < found; ++next) {
    for (uint32_t i = 0; i < left;) {
      const Join join = joins_[i];
      if (join.waiting.stream != known[next].stream ||
          is_after(join.waiting.submitted, known[next].submitted)) {
        ++i;
        continue;
      }
      raise(join.before);
      known[found++] = join.before;
      joins_[i] = joins_[--left];
    }
  }
  joined_.store(left);
}

bool Bursts::is_idle(int64_t now_us) const {
  const auto idle = [now_us](const Stream& stream) {
    return stream.ended.load() == stream.submitted.load() ||
           now_us - stream.last_us.load(std::memory_order_relaxed) >= kSilentUs;
  };
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < used; ++i) {
    if (!idle(streams_[i])) return false;
  }
  return idle(streams_[kStreams - 1]);
}

// A submission that comes between the two checks finds the word odd and does not change it. The
// second check sees that submission and makes the word odd again. Its work may have ended by then,
// so the loop checks once more.
void Bursts::end_if_idle(std::atomic<uint32_t>* word, int64_t now_us) {
  for (;;) {
    uint32_t seen = word->load();
    if (!is_busy(seen)) return;
    if (!is_idle(now_us)) return refresh(word, now_us);
    if (!word->compare_exchange_strong(seen, seen + 1)) continue;
    if (is_idle(now_us)) break;
    seen = word->load();
    if (!is_busy(seen)) word->compare_exchange_strong(seen, seen + 1);
  }
  futex_wake_shared(word, INT32_MAX);
}

void Bursts::ended(std::atomic<uint32_t>* word, const StreamMark& mark, int64_t now_us) {
  raise_joined(mark);
  end_if_idle(word, now_us);
}

void Bursts::all_ended(std::atomic<uint32_t>* word, const AllMarks& marks, int64_t now_us) {
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < used; ++i) raise_joined({i, marks.submitted[i]});
  raise({kStreams - 1, marks.submitted[kStreams - 1]});
  end_if_idle(word, now_us);
}

void Bursts::forget(std::atomic<uint32_t>* word, uint64_t stream, int64_t now_us) {
  const uint32_t index = find(stream);
  if (index == kStreams - 1) return;
  remove(index);
  end_if_idle(word, now_us);
}

void Bursts::forget_context(std::atomic<uint32_t>* word, uint64_t context, int64_t now_us) {
  const uint32_t used = used_.load();
  for (uint32_t i = 0; i < used; ++i) {
    if (streams_[i].key.load() != 0 && streams_[i].context.load() == context) remove(i);
  }
  end_if_idle(word, now_us);
}

// The streams for which a destroyed stream waited have not ended because of that.
void Bursts::remove(uint32_t index) {
  const Lock lock(mutex_);
  uint32_t left = joined_.load();
  for (uint32_t i = 0; i < left;) {
    if (joins_[i].waiting.stream == index || joins_[i].before.stream == index) {
      joins_[i] = joins_[--left];
    } else {
      ++i;
    }
  }
  joined_.store(left);
  streams_[index].ended.store(streams_[index].submitted.load());
  streams_[index].key.store(0);
}

// If there is no place, the work before the event ends later: by a call that waits for it, or by
// kSilentUs.
void Bursts::add_join(uint32_t waiting, const StreamMark& event) {
  if (waiting == kStreams - 1 || waiting == event.stream) return;
  const Lock lock(mutex_);
  uint32_t left = joined_.load();
  for (uint32_t i = 0; i < left;) {
    const bool again =
        joins_[i].waiting.stream == waiting && joins_[i].before.stream == event.stream;
    if (again || has_ended(joins_[i].before)) {
      joins_[i] = joins_[--left];
    } else {
      ++i;
    }
  }
  // The wait counts as a submission, so that a mark from before it does not cover it.
  if (left < kJoins) {
    joins_[left++] = {{waiting, streams_[waiting].submitted.fetch_add(1) + 1}, event};
  }
  joined_.store(left);
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
