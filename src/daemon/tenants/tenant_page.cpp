#include "daemon/tenants/tenant_page.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace gpurota::daemon {
namespace {

std::uint64_t load(const std::uint64_t& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }
Bytes load_bytes(const std::uint64_t& field) { return std::min(Bytes(load(field)), kMostSaid); }
std::uint64_t load_count(const std::uint64_t& field) { return std::min(load(field), kMostCounted); }
void store(std::uint64_t& field, std::uint64_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
}

// Accepts only function names, as people are shown what a tenant writes.
bool is_function_name(std::string_view name) {
  return name.starts_with("cu") && name.size() < GPUROTA_PAGE_NAME_BYTES &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

std::vector<std::string> read_names(const gpurota_page& page) {
  const std::uint32_t said = __atomic_load_n(&page.unhooked_names, __ATOMIC_ACQUIRE);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < std::min(said, GPUROTA_PAGE_NAMES); ++i) {
    char copy[GPUROTA_PAGE_NAME_BYTES];
    // The tenant may write meanwhile. The characters are checked below, even if the name is torn.
    for (std::size_t at = 0; at < sizeof copy; ++at) {
      copy[at] = __atomic_load_n(&page.unhooked_name[i][at], __ATOMIC_RELAXED);
    }
    std::string name(copy, ::strnlen(copy, sizeof copy));
    if (is_function_name(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

void lay_out_page(gpurota_page& page, std::span<const GpuUuid> gpus) {
  page = {};
  page.magic = GPUROTA_PAGE_MAGIC;
  page.version = GPUROTA_PAGE_VERSION;
  page.slots = static_cast<std::uint32_t>(std::min<std::size_t>(gpus.size(), GPUROTA_SLOTS));
  page.size = sizeof(gpurota_page);
  for (std::size_t slot = 0; slot < page.slots; ++slot) {
    if (const auto bytes = uuid_bytes(gpus[slot])) {
      std::copy(bytes->begin(), bytes->end(), page.grant[slot].uuid);
    }
  }
}

void assume_use(gpurota_page& page, std::size_t slot, Bytes used) {
  if (slot < GPUROTA_SLOTS) store(page.use[slot].used_bytes, used.count());
}

void publish(gpurota_page& page, std::size_t slot, Bytes limit, Bytes available) {
  if (slot >= GPUROTA_SLOTS) return;
  store(page.grant[slot].limit_bytes, limit.count());
  store(page.grant[slot].available_bytes, available.count());
}

TenantUse read_use(const gpurota_page& page, std::size_t slot) {
  if (slot >= GPUROTA_SLOTS) return {};
  const gpurota_page_use& use = page.use[slot];
  // The library counts missing hooks, held back work and bursts in the first slot.
  return {.used = load_bytes(use.used_bytes),
          .headroom = load_bytes(use.headroom_bytes),
          .imported = load_bytes(use.imported_bytes),
          .allocations = load_count(use.allocations),
          .refusals = load_count(use.refusals),
          .held = std::chrono::microseconds(load_count(page.use[0].held_us)),
          .waited = std::chrono::microseconds(load_count(page.waited_us)),
          .bursts = load_count(page.use[0].bursts),
          .unhooked = load_count(page.use[0].unhooked),
          .unhooked_names = read_names(page)};
}

TenantCounts read_counts(const gpurota_page& page, std::size_t slots) {
  TenantCounts counts;
  for (std::size_t slot = 0; slot < std::min<std::size_t>(slots, GPUROTA_SLOTS); ++slot) {
    counts.allocations += load_count(page.use[slot].allocations);
    counts.refusals += load_count(page.use[slot].refusals);
  }
  return counts;
}

}  // namespace gpurota::daemon
