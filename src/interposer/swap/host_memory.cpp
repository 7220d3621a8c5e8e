#include "interposer/swap/host_memory.h"

namespace gpurota::interposer {
namespace {

uint32_t mask_of(uint32_t first, uint32_t count) {
  return static_cast<uint32_t>(((uint64_t{1} << count) - 1) << first);
}

}  // namespace

void HostMemory::set_limits(const SwapCalls* calls, uint64_t budget, uint64_t pinned) {
  calls_ = calls;
  budget_ = budget;
  pinned_limit_ = pinned;
}

bool HostMemory::add_region(bool hurry, bool pageable) {
  bool may_pin = false;
  {
    Lock lock(mutex_);
    if (total_ + kRegionBytes > budget_) return false;
    total_ += kRegionBytes;
    may_pin = !pageable && pinned_now_ + pinned_elsewhere_ + kRegionBytes <= pinned_limit_;
    if (may_pin) pinned_now_ += kRegionBytes;
  }
  auto* memory = static_cast<char*>(
      spare_ != nullptr ? spare_ : calls_->map_host(calls_->self, kRegionBytes, hurry));
  spare_ = nullptr;
  const bool pinned =
      memory != nullptr && may_pin && calls_->pin(calls_->self, memory, kRegionBytes);
  uint32_t index = 0;
  {
    Lock lock(mutex_);
    if (may_pin && !pinned) pinned_now_ -= kRegionBytes;
    if (memory != nullptr) index = regions_.take();
    if (index != 0) {
      regions_[index].memory = memory;
      regions_[index].pinned = pinned;
      regions_[index].lost_pin = false;
      regions_[index].refused = may_pin && !pinned;
      free_ += kRegionBytes;
      return true;
    }
    total_ -= kRegionBytes;
    if (pinned) pinned_now_ -= kRegionBytes;
  }
  if (pinned) calls_->unpin(calls_->self, memory);
  if (memory != nullptr) calls_->unmap_host(calls_->self, memory, kRegionBytes);
  return false;
}

uint32_t HostMemory::find_run(const Region& region, uint32_t most, uint32_t* first) {
  uint32_t best = 0;
  uint32_t run = 0;
  for (uint32_t i = 0; i < kUnitsPerRegion; ++i) {
    run = (region.used >> i & 1) == 0 ? run + 1 : 0;
    if (run > best) {
      best = run;
      *first = i + 1 - run;
    }
    if (best == most) break;
  }
  return best;
}

void HostMemory::take_units(Region& region, uint32_t index, uint32_t first, uint32_t count,
                            HostBuffer* out) {
  region.used |= mask_of(first, count);
  free_ -= count * kUnitBytes;
  out->extents[out->count++] = {index, static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
}

// Takes whole runs where there are any: one copy instead of several. Without `pageable`, pinned
// regions come first; with it, only pageable regions are used.
bool HostMemory::take_free(uint64_t units, HostBuffer* out, bool pageable) {
  Lock lock(mutex_);
  if (free_ < units * kUnitBytes) return false;
  if (pageable) {
    uint64_t pageable_units = 0;
    for (uint32_t i = 1; i < regions_.end(); ++i) {
      if (!regions_.is_used(i) || regions_[i].pinned) continue;
      pageable_units +=
          kUnitsPerRegion - static_cast<uint32_t>(__builtin_popcount(regions_[i].used));
    }
    if (pageable_units < units) return false;
  }
  for (const bool pinned : {!pageable, false}) {
    for (uint32_t i = 1; i < regions_.end() && units > 0; ++i) {
      if (!regions_.is_used(i) || regions_[i].pinned != pinned) continue;
      while (units > 0) {
        const auto most = static_cast<uint32_t>(units < kUnitsPerRegion ? units : kUnitsPerRegion);
        uint32_t first = 0;
        const uint32_t run = find_run(regions_[i], most, &first);
        if (run == 0) break;
        take_units(regions_[i], i, first, run, out);
        units -= run;
      }
    }
  }
  return true;
}

bool HostMemory::take(uint64_t bytes, HostBuffer* out, bool pageable) {
  out->count = 0;
  const uint64_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
  if (units > kExtents) return false;
  if (pageable) {
    bool taken = take_free(units, out, true);
    while (!taken && add_region(true, true)) taken = take_free(units, out, true);
    if (taken) return true;
  }
  while (!take_free(units, out, false)) {
    if (!add_region(true, false)) return false;
  }
  return true;
}

void HostMemory::give_back(HostBuffer* buffer) {
  Lock lock(mutex_);
  for (uint32_t i = 0; i < buffer->count; ++i) {
    const HostExtent& e = buffer->extents[i];
    regions_[e.region].used &= ~mask_of(e.first, e.count);
    free_ += e.count * kUnitBytes;
  }
  buffer->count = 0;
}

void HostMemory::touch_next() {
  if (spare_ == nullptr) spare_ = calls_->map_host(calls_->self, kRegionBytes, false);
}

bool HostMemory::prepare(uint64_t bytes) {
  return free_bytes() < bytes && add_region(false, false);
}

// A region that is being given back is marked as full meanwhile.
void HostMemory::trim(uint64_t keep) {
  constexpr uint32_t kFull = (1u << kUnitsPerRegion) - 1;
  for (uint32_t i = 1;; ++i) {
    Region region{};
    {
      Lock lock(mutex_);
      if (i >= regions_.end() || free_ < keep + kRegionBytes) return;
      if (!regions_.is_used(i) || regions_[i].used != 0) continue;
      region = regions_[i];
      regions_[i].used = kFull;
      free_ -= kRegionBytes;
    }
    // The driver may still have a record of a region that has lost its pin.
    if (region.pinned || region.lost_pin) calls_->unpin(calls_->self, region.memory);
    calls_->unmap_host(calls_->self, region.memory, kRegionBytes);
    Lock lock(mutex_);
    if (region.pinned) pinned_now_ -= kRegionBytes;
    total_ -= kRegionBytes;
    regions_.give_back(i);
  }
}

void HostMemory::lose_pins() {
  Lock lock(mutex_);
  for (uint32_t i = 1; i < regions_.end(); ++i) {
    if (!regions_.is_used(i) || !regions_[i].pinned) continue;
    regions_[i].pinned = false;
    regions_[i].lost_pin = true;
    pinned_now_ -= kRegionBytes;
  }
}

// The driver may still have a record of a lost pin. The region has stayed mapped since, so the
// record is of the same pages.
bool HostMemory::pin_more() {
  uint32_t index = 0;
  bool lost_pin = false;
  char* memory = nullptr;
  {
    Lock lock(mutex_);
    if (pinned_now_ + pinned_elsewhere_ + kRegionBytes > pinned_limit_) return false;
    for (uint32_t i = 1; i < regions_.end() && index == 0; ++i) {
      if (!regions_.is_used(i)) continue;
      const Region& region = regions_[i];
      const bool may_gain = region.used != 0 && !region.pinned && !region.refused;
      if (region.lost_pin || may_gain) index = i;
    }
    if (index == 0) return false;
    memory = regions_[index].memory;
    lost_pin = regions_[index].lost_pin;
    regions_[index].lost_pin = false;
    pinned_now_ += kRegionBytes;
  }
  if (lost_pin) calls_->unpin(calls_->self, memory);
  const bool pinned = calls_->pin(calls_->self, memory, kRegionBytes);
  Lock lock(mutex_);
  regions_[index].pinned = pinned;
  regions_[index].refused = !pinned;
  if (!pinned) pinned_now_ -= kRegionBytes;
  return true;
}

void HostMemory::count_pinned(uint64_t bytes) {
  Lock lock(mutex_);
  pinned_elsewhere_ += bytes;
}

uint64_t HostMemory::total_bytes() {
  Lock lock(mutex_);
  return total_;
}

uint64_t HostMemory::free_bytes() {
  Lock lock(mutex_);
  return free_;
}

uint64_t HostMemory::pinned_limit() {
  Lock lock(mutex_);
  return pinned_limit_;
}

uint64_t HostMemory::pinned_bytes() {
  Lock lock(mutex_);
  return pinned_now_;
}

char* HostMemory::address(const HostExtent& extent) {
  Lock lock(mutex_);
  return regions_[extent.region].memory + extent.first * kUnitBytes;
}

bool HostMemory::pinned(const HostExtent& extent) {
  Lock lock(mutex_);
  return regions_[extent.region].pinned;
}

HashSum HostMemory::sum(const HostExtent& extent, uint32_t unit) {
  Lock lock(mutex_);
  return regions_[extent.region].sums[extent.first + unit];
}

void HostMemory::set_sum(const HostExtent& extent, uint32_t unit, const HashSum& sum) {
  Lock lock(mutex_);
  regions_[extent.region].sums[extent.first + unit] = sum;
}

}  // namespace gpurota::interposer
