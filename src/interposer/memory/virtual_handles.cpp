#include "interposer/memory/virtual_handles.h"

#include "interposer/driver/page_bytes.h"

namespace gpurota::interposer {

bool virtual_find(State& s, uint64_t address, VirtualFound* out) {
  Vmm& v = memory_of(s).vmm;
  if (v.page_count.load(std::memory_order_relaxed) == 0) return false;
  Lock lock(v.mutex);
  const uint64_t* key = v.pages.find(address / kPageBytes);
  const Mapping* mapping = key != nullptr ? v.mappings.find(*key) : nullptr;
  const Physical* p = mapping != nullptr ? v.physicals.find(mapping->physical) : nullptr;
  if (p == nullptr) return false;
  *out = {{*key, mapping->size},
          mapping->offset,
          mapping->access,
          mapping->physical,
          p->home,
          p->traits,
          p->slot};
  return true;
}

uint64_t virtual_next(State& s, uint64_t address, uint64_t end) {
  Vmm& v = memory_of(s).vmm;
  if (v.page_count.load(std::memory_order_relaxed) == 0) return end;
  Lock lock(v.mutex);
  for (uint64_t at = address; at < end; at = (at / kPageBytes + 1) * kPageBytes) {
    if (const uint64_t* key = v.pages.find(at / kPageBytes)) return *key > at ? *key : at;
  }
  return end;
}

bool virtual_any(State& s, const AddressRange& range) {
  const uint64_t end = range.address + range.size;
  return end > range.address && virtual_next(s, range.address, end) != end;
}

bool virtual_cuts(State& s, const AddressRange& range) {
  VirtualFound found;
  const uint64_t end = range.address + range.size;
  if (virtual_find(s, range.address, &found) && found.mapping.address != range.address) return true;
  return virtual_find(s, end - 1, &found) && found.mapping.address + found.mapping.size > end;
}

bool virtual_retain(State& s, uint64_t address, CUmemGenericAllocationHandle* out,
                    CUresult* result) {
  VirtualFound found;
  if (!virtual_find(s, address, &found)) return false;
  *result = out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (out == nullptr) return true;
  Lock lock(memory_of(s).vmm.mutex);
  Physical* p = memory_of(s).vmm.physicals.find(found.physical);
  HandleRef* known =
      p != nullptr ? memory_of(s).vmm.handles.put(kVirtualHandle | found.physical) : nullptr;
  if (known == nullptr) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return true;
  }
  known->physical = found.physical;
  ++known->count;
  ++p->handles;
  *out = kVirtualHandle | found.physical;
  return true;
}

void virtual_mark_ended(Vmm& v, uint64_t id) {
  Physical* p = v.physicals.find(id);
  if (p == nullptr) return;
  p->next_ended = v.ended.load(std::memory_order_relaxed);
  v.ended.store(id, std::memory_order_release);
}

}  // namespace gpurota::interposer
