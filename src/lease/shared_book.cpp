#include "lease/shared_book.h"

#include <algorithm>
#include <iterator>

namespace gpurota::lease {

bool SharedBook::hold(TenantId tenant, const SharedPlace& place, MemoryKey key, Bytes bytes) {
  if (key == 0 || bytes.is_zero()) return false;
  Shared& shared = places_[place];
  std::size_t& charges = shared.charges_of[tenant];
  const auto found = shared.memory.find(key);
  const bool is_other = found != shared.memory.end() && found->second.bytes != bytes;
  if (is_other || charges >= kMostOfTenant) return false;
  ++charges;
  Memory& memory = shared.memory[key];
  memory.bytes = bytes;
  ++memory.holders[tenant];
  if (++memory.charges > 1) shared.counted_again += bytes;
  shared.of_tenant[tenant] += bytes;
  return true;
}

void SharedBook::end_one(Shared& shared, std::map<MemoryKey, Memory>::iterator found,
                         TenantId tenant) {
  Memory& memory = found->second;
  if (--memory.holders[tenant] == 0) memory.holders.erase(tenant);
  if (memory.charges-- > 1) shared.counted_again -= memory.bytes;
  shared.of_tenant[tenant] -= memory.bytes;
  if (--shared.charges_of[tenant] == 0) {
    shared.charges_of.erase(tenant);
    shared.of_tenant.erase(tenant);
  }
  if (memory.charges == 0) shared.memory.erase(found);
}

bool SharedBook::drop(TenantId tenant, const SharedPlace& place, MemoryKey key) {
  const auto at = places_.find(place);
  if (at == places_.end()) return false;
  const auto found = at->second.memory.find(key);
  if (found == at->second.memory.end() || !found->second.holders.contains(tenant)) return false;
  end_one(at->second, found, tenant);
  return true;
}

void SharedBook::forget(TenantId tenant, const SharedPlace& place) {
  const auto at = places_.find(place);
  if (at == places_.end() || !at->second.charges_of.contains(tenant)) return;
  for (auto it = at->second.memory.begin(); it != at->second.memory.end();) {
    const auto next = std::next(it);
    const auto held = it->second.holders.find(tenant);
    for (int left = held == it->second.holders.end() ? 0 : held->second; left > 0; --left) {
      end_one(at->second, it, tenant);
    }
    it = next;
  }
}

void SharedBook::forget(TenantId tenant, LeaseId lease) {
  for (const auto& entry : places_) {
    if (entry.first.first == lease) forget(tenant, entry.first);
  }
}

void SharedBook::close(LeaseId lease) {
  std::erase_if(places_, [&](const auto& entry) { return entry.first.first == lease; });
}

std::optional<Bytes> SharedBook::find(const SharedPlace& place, MemoryKey key) const {
  const auto at = places_.find(place);
  if (at == places_.end()) return std::nullopt;
  const auto found = at->second.memory.find(key);
  return found == at->second.memory.end() ? std::nullopt : std::optional(found->second.bytes);
}

std::optional<Bytes> SharedBook::size_of(const GpuUuid& gpu, MemoryKey key) const {
  std::optional<Bytes> size;
  for (const auto& [place, shared] : places_) {
    if (place.second != gpu) continue;
    const auto found = shared.memory.find(key);
    if (found != shared.memory.end()) size = std::max(size.value_or(Bytes()), found->second.bytes);
  }
  return size;
}

Bytes SharedBook::counted_by_several(const GpuUuid& gpu) const {
  std::map<MemoryKey, Bytes> seen;
  Bytes sum;
  for (const auto& [place, shared] : places_) {
    if (place.second != gpu) continue;
    for (const auto& [key, memory] : shared.memory) {
      const auto [found, is_first] = seen.try_emplace(key, memory.bytes);
      if (!is_first) sum += std::min(found->second, memory.bytes);
    }
  }
  return sum;
}

Bytes SharedBook::of_tenant(TenantId tenant, const SharedPlace& place) const {
  const auto at = places_.find(place);
  if (at == places_.end()) return {};
  const auto found = at->second.of_tenant.find(tenant);
  return found == at->second.of_tenant.end() ? Bytes() : found->second;
}

Bytes SharedBook::counted_again(const SharedPlace& place) const {
  const auto at = places_.find(place);
  return at == places_.end() ? Bytes() : at->second.counted_again;
}

}  // namespace gpurota::lease
