// Pages that are there before they are pinned: the kernel clears them at some 4 GiB/s a thread, and
// whoever waits for an eviction into host memory that is not ready waits for that. Any thread;
// nothing here calls the driver.
#pragma once

#include <cstdint>

namespace gpurota::interposer {

// `memory` of `size` bytes is mapped. In a hurry by several threads of our own, which are gone when
// this returns but for their last instructions; else, and where there are no threads to be had, by
// the caller alone. False: there are no pages for it.
bool touch_pages(void* memory, uint64_t size, bool hurry);

}  // namespace gpurota::interposer
