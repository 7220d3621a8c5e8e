#include "daemon/tenant_page.h"

#include <algorithm>

namespace gpurota::daemon {
namespace {

std::uint64_t load(const std::uint64_t& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }
void store(std::uint64_t& field, std::uint64_t value) {
  __atomic_store_n(&field, value, __ATOMIC_RELAXED);
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
  return {Bytes(load(use.used_bytes)), Bytes(load(use.headroom_bytes)), load(use.allocations),
          load(use.refusals), load(use.unhooked)};
}

}  // namespace gpurota::daemon
