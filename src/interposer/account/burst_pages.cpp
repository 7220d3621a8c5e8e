#include "interposer/account/burst_pages.h"

#include "interposer/account/state.h"
#include "interposer/os/debug.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr uint32_t kPages = 1 + GPUROTA_MOST_HOLDS;
constexpr int64_t kMarkedMs = 1000;

bool reserve_addresses(BurstPages& pages) {
  if (pages.memory.load(std::memory_order_relaxed) != nullptr) return true;
  void* memory = map_memory(size_t{kPages} * GPUROTA_PAGE_BYTES, MADV_DONTFORK);
  pages.memory.store(static_cast<unsigned char*>(memory), std::memory_order_release);
  return memory != nullptr;
}

bool is_sealed_page(int fd) { return sealed_size(fd) == static_cast<off_t>(GPUROTA_PAGE_BYTES); }

// Replaces one page; fd -1: by zeros. If that fails, the old page stays.
bool replace(BurstPages& pages, uint32_t page, int fd) {
  const bool own = page == 0;
  const int kind = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  const int access = own || fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  unsigned char* at = pages.memory.load(std::memory_order_relaxed) + page * GPUROTA_PAGE_BYTES;
  if (::mmap(at, GPUROTA_PAGE_BYTES, access, kind | MAP_FIXED, fd, 0) == MAP_FAILED) return false;
  ::madvise(at, GPUROTA_PAGE_BYTES, MADV_DONTFORK);
  return true;
}

template <typename Message>
bool read(const void* packet, long size, Message* out) {
  if (size < static_cast<long>(sizeof(Message))) return false;
  memcpy(out, packet, sizeof(Message));
  return true;
}

// A process that cannot take or map the page, because it has no descriptor left, does not answer,
// and nobody is held back for it. The connection stays.
bool on_mark(State& s, const Socket& event, const gpurota_msg_mark& mark, const Descriptors& fds) {
  if (mark.on == 0) {
    s.roles.fetch_and(~kMarksBursts);
    if (s.bursts.memory.load() != nullptr) replace(s.bursts, 0, -1);
    return true;
  }
  if (fds.count() != 1 || !is_sealed_page(fds[0])) return true;
  if (!reserve_addresses(s.bursts) || !replace(s.bursts, 0, fds[0])) {
    GPUROTA_DEBUG("could not map the page for bursts of work");
    return true;
  }
  s.roles.fetch_or(kMarksBursts, std::memory_order_release);
  gpurota_msg_marked marked{};
  marked.header = {GPUROTA_MSG_MARKED, sizeof(marked), mark.header.seq};
  return send_packet(event, &marked, sizeof(marked), now_ms() + kMarkedMs);
}

bool on_hold(State& s, const gpurota_msg_hold& hold, const Descriptors& fds) {
  if (fds.count() != 1 || !is_sealed_page(fds[0])) return true;
  if (!reserve_addresses(s.bursts)) return true;
  const uint32_t used = s.bursts.held_for.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < GPUROTA_MOST_HOLDS; ++i) {
    if ((used & (1u << i)) != 0) continue;
    if (!replace(s.bursts, 1 + i, fds[0])) return true;
    s.bursts.tenants[i] = hold.tenant;
    s.bursts.budget.store(hold.budget, std::memory_order_relaxed);
    s.bursts.held_for.fetch_or(1u << i, std::memory_order_release);
    s.roles.fetch_or(kHoldsBack, std::memory_order_release);
    return true;
  }
  GPUROTA_DEBUG("too many interactive processes: work is not held back for one of them");
  return true;
}

// Threads that wait for the page's word wake when their time is over, at most 50 ms later.
void end_hold(State& s, uint32_t index) {
  s.bursts.held_for.fetch_and(~(1u << index));
  if (s.bursts.held_for.load() == 0) s.roles.fetch_and(~kHoldsBack);
  replace(s.bursts, 1 + index, -1);
}

void on_hold_end(State& s, uint64_t tenant) {
  const uint32_t used = s.bursts.held_for.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < GPUROTA_MOST_HOLDS; ++i) {
    if ((used & (1u << i)) != 0 && s.bursts.tenants[i] == tenant) end_hold(s, i);
  }
}

// Threads that wait for a window wake when their time is over.
void on_windows(State& s, const gpurota_msg_windows& windows) {
  if (windows.on != 0) {
    // Nobody has made the word even since WINDOWS was off. The next submission makes it odd again.
    uint32_t& work = s.page.load(std::memory_order_acquire)->work;
    uint32_t seen = __atomic_load_n(&work, __ATOMIC_RELAXED);
    if ((seen & 1) != 0) {
      __atomic_compare_exchange_n(&work, &seen, seen + 1, false, __ATOMIC_RELEASE,
                                  __ATOMIC_RELAXED);
    }
    s.roles.fetch_or(kTakesWindows, std::memory_order_release);
  } else {
    s.roles.fetch_and(~kTakesWindows);
  }
}

}  // namespace

bool take_burst_message(State& s, const Socket& event, const void* packet, long size,
                        Descriptors* fds) {
  gpurota_msg_header header;
  if (!read(packet, size, &header)) return false;
  gpurota_msg_mark mark;
  gpurota_msg_hold hold;
  gpurota_msg_hold_end end;
  gpurota_msg_windows windows;
  switch (header.type) {
    case GPUROTA_MSG_MARK:
      return read(packet, size, &mark) && on_mark(s, event, mark, *fds);
    case GPUROTA_MSG_HOLD:
      return read(packet, size, &hold) && on_hold(s, hold, *fds);
    case GPUROTA_MSG_HOLD_END:
      if (!read(packet, size, &end)) return false;
      on_hold_end(s, end.tenant);
      return true;
    case GPUROTA_MSG_WINDOWS:
      if (!read(packet, size, &windows)) return false;
      on_windows(s, windows);
      return true;
    default:
      return true;
  }
}

void forget_burst_pages(State& s) {
  s.roles.fetch_and(~kTakesWindows);
  if (s.bursts.memory.load(std::memory_order_relaxed) == nullptr) return;
  s.roles.fetch_and(~kMarksBursts);
  replace(s.bursts, 0, -1);
  for (uint32_t i = 0; i < GPUROTA_MOST_HOLDS; ++i) end_hold(s, i);
}

}  // namespace gpurota::interposer
