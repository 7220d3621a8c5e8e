// Touches pages before they are pinned. The kernel zeroes pages at about 4 GiB/s in each thread,
// and an eviction into host memory that was not touched waits for the kernel. Any thread; nothing
// here calls the driver.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

// Touches `size` bytes of mapped memory. `hurry`: several threads of our own touch the pages; on
// return these threads have ended, except for their last instructions. Otherwise, or if no thread
// can be made, the caller alone touches the pages. False: no pages are left.
bool touch_pages(void* memory, uint64_t size, bool hurry);

}  // namespace gpurota::interposer
