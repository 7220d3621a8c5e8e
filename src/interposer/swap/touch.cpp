#include "interposer/swap/touch.h"

#include "interposer/os/sys.h"
#include "interposer/os/threads.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kPart = uint64_t{2} << 20;  // a huge page
constexpr int kHelpers = 3;

bool touch(char* memory, uint64_t size) {
  constexpr uint64_t kSmallestPage = 4096;
  if (::madvise(memory, size, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  for (uint64_t at = 0; at < size; at += kSmallestPage) {  // Linux before 5.14
    volatile char& page = memory[at];
    page = 0;
  }
  return true;
}

// On the caller's stack: it waits until nobody is at it any more.
struct Work {
  char* memory;
  uint64_t size;
  std::atomic<uint64_t> next;
  std::atomic<uint32_t> failed;
  std::atomic<uint32_t> helpers;
};

void touch_parts(Work& work) {
  while (work.failed.load(std::memory_order_relaxed) == 0) {
    const uint64_t at = work.next.fetch_add(kPart, std::memory_order_relaxed);
    if (at >= work.size) return;
    const uint64_t rest = work.size - at;
    if (!touch(work.memory + at, rest < kPart ? rest : kPart)) work.failed.store(1);
  }
}

// The wake-up may come after the caller has gone on: it is of an address, whatever is there by
// then.
void* help(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  touch_parts(work);
  std::atomic<uint32_t>* const left = &work.helpers;
  if (left->fetch_sub(1) == 1) futex_wake(left, 1);
  return nullptr;
}

}  // namespace

bool touch_pages(void* memory, uint64_t size, bool hurry) {
  Work work{static_cast<char*>(memory), size, {}, {}, {}};
  for (int i = 0; hurry && size > kPart && i < kHelpers; ++i) {
    work.helpers.fetch_add(1);
    if (start_thread(help, &work)) continue;
    work.helpers.fetch_sub(1);
    break;
  }
  touch_parts(work);
  for (uint32_t left = work.helpers.load(); left != 0; left = work.helpers.load()) {
    futex_wait(&work.helpers, left, nullptr);
  }
  return work.failed.load() == 0;
}

}  // namespace gpurota::interposer
