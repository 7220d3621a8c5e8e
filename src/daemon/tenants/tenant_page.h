// The daemon's end of the page it shares with one tenant (abi/page.h). State thread only.
//
// The tenant may write anything at any time. Everything is read once, atomically, and used only for
// display, or as a hint that the grant book bounds.
#pragma once

#include "abi/page.h"
#include "base/bytes.h"
#include "core/gpu.h"

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace gpurota::daemon {

// The most that a tenant may report: no process has more, and sums over all tenants do not wrap.
constexpr Bytes kMostSaid{std::uint64_t{1} << 60};
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 40;

// A tenant's report of itself on one GPU, bounded by kMostSaid and kMostCounted.
struct TenantUse {
  Bytes used;
  Bytes headroom;
  Bytes imported;  // of `used`: memory that another process made
  std::uint64_t allocations = 0;
  std::uint64_t refusals = 0;
  std::chrono::microseconds held{};  // how long work was held back for interactive leases
  // How long submissions have waited for windows of compute time; of all threads together.
  std::chrono::microseconds waited{};
  std::uint64_t bursts = 0;    // of work, in an interactive lease
  std::uint64_t unhooked = 0;  // driver functions that libgpurota has no hook for and should have
  std::vector<std::string> unhooked_names;  // the first few of them
};

// Fills a fresh page: one slot for each GPU, in the order the lease has them.
void lay_out_page(gpurota_page& page, std::span<const GpuUuid> gpus);
// Enters the memory of a tenant that has connected again, until the tenant writes its own report.
// Otherwise a sample in between would count all of the tenant's memory as overhead.
void assume_use(gpurota_page& page, std::size_t slot, Bytes used);
void publish(gpurota_page& page, std::size_t slot, Bytes limit, Bytes available);
TenantUse read_use(const gpurota_page& page, std::size_t slot);
// The counts of all slots together.
struct TenantCounts {
  std::uint64_t allocations = 0;
  std::uint64_t refusals = 0;
};
TenantCounts read_counts(const gpurota_page& page, std::size_t slots);

}  // namespace gpurota::daemon
