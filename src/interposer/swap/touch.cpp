#include "interposer/swap/touch.h"

#include "interposer/os/sys.h"
#include "interposer/os/thread_pool.h"

namespace gpurota::interposer {
namespace {

constexpr uint64_t kPart = uint64_t{2} << 20;  // a huge page

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

struct Pages {
  char* memory;
  uint64_t size;
  std::atomic<bool> failed;
};

void touch_part(void* context, uint32_t part) {
  Pages& pages = *static_cast<Pages*>(context);
  if (pages.failed.load(std::memory_order_relaxed)) return;
  const uint64_t at = part * kPart;
  const uint64_t rest = pages.size - at;
  if (!touch(pages.memory + at, rest < kPart ? rest : kPart)) pages.failed.store(true);
}

}  // namespace

bool touch_pages(void* memory, uint64_t size, bool hurry) {
  Pages pages{static_cast<char*>(memory), size, {}};
  const auto parts = static_cast<uint32_t>((size + kPart - 1) / kPart);
  if (hurry) {
    ThreadPool pool;
    pool.divide(parts, touch_part, &pages);
    pool.stop();
  } else {
    for (uint32_t part = 0; part < parts; ++part) touch_part(&pages, part);
  }
  return !pages.failed.load();
}

}  // namespace gpurota::interposer
