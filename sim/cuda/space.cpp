#include "sim/cuda/space.h"

#include <algorithm>
#include <mutex>

namespace gpurota::sim {

std::map<CUdeviceptr, Allocation>::const_iterator Space::holder(CUdeviceptr address) const {
  auto next = allocations_.upper_bound(address);
  if (next == allocations_.begin()) return allocations_.end();
  --next;
  return address - next->first < next->second.extent() ? next : allocations_.end();
}

void Space::add(const Allocation& allocation) {
  const std::unique_lock lock(mutex_);
  allocations_[allocation.base] = allocation;
}

std::optional<Allocation> Space::find(CUdeviceptr address) const {
  const std::shared_lock lock(mutex_);
  const auto found = holder(address);
  if (found == allocations_.end()) return std::nullopt;
  return found->second;
}

std::optional<Allocation> Space::find_if(
    const std::function<bool(const Allocation&)>& wanted) const {
  const std::shared_lock lock(mutex_);
  for (const auto& [base, allocation] : allocations_) {
    if (wanted(allocation)) return allocation;
  }
  return std::nullopt;
}

std::optional<Allocation> Space::remove(CUdeviceptr base) {
  const std::unique_lock lock(mutex_);
  const auto found = allocations_.find(base);
  if (found == allocations_.end()) return std::nullopt;
  std::optional<Allocation> taken = std::move(found->second);
  allocations_.erase(found);
  return taken;
}

void Space::update(CUdeviceptr base, const std::function<void(Allocation&)>& change) {
  const std::unique_lock lock(mutex_);
  const auto found = allocations_.find(base);
  if (found != allocations_.end()) change(found->second);
}

std::vector<Allocation> Space::remove_if(const std::function<bool(const Allocation&)>& wanted) {
  const std::unique_lock lock(mutex_);
  std::vector<Allocation> taken;
  for (auto at = allocations_.begin(); at != allocations_.end();) {
    if (!wanted(at->second)) {
      ++at;
      continue;
    }
    taken.push_back(std::move(at->second));
    at = allocations_.erase(at);
  }
  return taken;
}

bool Space::overlaps(CUdeviceptr base, std::size_t size) const {
  const std::shared_lock lock(mutex_);
  const auto next = allocations_.lower_bound(base);
  if (next != allocations_.end() && next->first < base + size) return true;
  return holder(base) != allocations_.end();
}

CUresult Space::Use::check(CUdeviceptr address, std::size_t bytes, bool allow_host) const {
  CUdeviceptr at = address;
  const CUdeviceptr end = address + bytes;
  while (at < end) {
    const auto found = space_.holder(at);
    if (found == space_.allocations_.end()) {
      return allow_host && at == address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    const Allocation& part = found->second;
    if (part.access == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t offset = at - part.base;
    const std::size_t length = std::min<std::size_t>(part.extent() - offset, end - at);
    if (part.mapping && !part.mapping->touch(part.mapping_offset + offset, length)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    at += length;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpurota::sim
