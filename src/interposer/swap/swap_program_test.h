// A program with memory that moves, on the driver of swap_driver_test.h. Keeps a checksum for each
// of its allocations.
#pragma once

#include "interposer/swap/mover.h"
#include "interposer/swap/swap_driver_test.h"

namespace gpurota::interposer::swap_test {

inline void no_progress(void*, std::uint64_t, std::uint64_t) {}

class Swap : public testing::Test {
 protected:
  explicit Swap(unsigned seed = 1) : driver(seed), random(seed), space(new SwapSpace()) {
    space->set_calls(&driver.calls);
    host().set_limits(&driver.calls, std::uint64_t{4} << 30, std::uint64_t{4} << 30);
  }

  HostMemory& host() { return space->host(); }
  Mover mover() { return Mover(*space, no_progress, nullptr); }

  std::uint64_t add(std::uint64_t size) {
    std::uint64_t address = 0;
    if (space->allocate(size, &address) != CUDA_SUCCESS) return 0;
    live[address] = size;
    write(address);
    return address;
  }
  // Writes the first and last bytes of an allocation and some between. At this scale a small
  // allocation has one byte of its own, or none.
  void write(std::uint64_t address) {
    const std::uint64_t size = live[address];
    if (size < kSmall) return;
    for (std::uint64_t at : probes(address, size)) {
      char* p = driver.at(at);
      ASSERT_NE(p, nullptr);
      *p = value[at] = static_cast<char>(random());
    }
  }
  void check(std::uint64_t address) {
    const std::uint64_t size = live[address];
    if (size < kSmall) return;
    for (std::uint64_t at : probes(address, size)) {
      const char* p = driver.at(at);
      ASSERT_NE(p, nullptr) << "not resident";
      ASSERT_EQ(*p, value[at]) << "a wrong byte";
    }
  }
  static std::vector<std::uint64_t> probes(std::uint64_t address, std::uint64_t size) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t o = 0; o < size / kScale * kScale; o += kMiB / 2) all.push_back(address + o);
    return all;
  }

  FakeDriver driver;
  std::mt19937_64 random;
  std::unique_ptr<SwapSpace> space;
  std::map<std::uint64_t, std::uint64_t> live;
  std::map<std::uint64_t, char> value;
};

}  // namespace gpurota::interposer::swap_test
