// A driver of a few functions for the tests of the hooks, installed into the table of real
// functions in the test's own process, so that the hooks run under the sanitizers. The driver hands
// out addresses, adds up the memory that a GPU would lose, and keeps the highest sum.
#pragma once

#include "interposer/driver/driver.h"

#include <cstdint>

namespace gpurota::interposer_test {

template <typename F>
void install(interposer::Fn id, F* function) {
  interposer::g_real_functions[id] = reinterpret_cast<void*>(function);
}

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// Begins anew with an empty driver, and with a tenant that has no daemon and a grant of `granted`
// bytes.
void reset_fake_driver(std::int64_t granted);

std::int64_t physical_bytes();
std::int64_t most_physical_bytes();
// The bytes that libgpurota has charged.
std::int64_t charged_bytes();
// Makes the driver's next `count` allocating calls fail.
void fail_allocations(int count);

}  // namespace gpurota::interposer_test
