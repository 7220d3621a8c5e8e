#include "interposer/swap/alias_table.h"

namespace gpurota::interposer {

CUresult AliasTable::add(uint32_t* first, const Alias& alias, uint64_t handle) {
  const uint32_t index = aliases_.take();
  if (index == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      calls_->map(calls_->self, alias.address, alias.size, alias.offset, handle);
  if (result != CUDA_SUCCESS) {
    aliases_.give_back(index);
    return result;
  }
  aliases_[index] = alias;
  aliases_[index].next = *first;
  *first = index;
  return CUDA_SUCCESS;
}

CUresult AliasTable::remove(uint32_t* first, uint64_t address, bool may_stay) {
  uint32_t* link = first;
  while (*link != 0 && (aliases_[*link].address != address || aliases_[*link].stale)) {
    link = &aliases_[*link].next;
  }
  const uint32_t index = *link;
  if (index == 0) return CUDA_SUCCESS;
  Alias& alias = aliases_[index];
  CUresult result = CUDA_SUCCESS;
  if (alias.mapped) result = calls_->unmap(calls_->self, alias.address, alias.size);
  if (result != CUDA_SUCCESS && !may_stay) return result;
  alias.stale = result != CUDA_SUCCESS;
  if (!alias.stale) {
    *link = alias.next;
    aliases_.give_back(index);
  }
  return CUDA_SUCCESS;
}

void AliasTable::note_access(uint32_t first, uint64_t address, uint64_t mask, uint64_t value) {
  for (uint32_t a = first; a != 0; a = aliases_[a].next) {
    Alias& alias = aliases_[a];
    if (alias.address == address) alias.access = (alias.access & ~mask) | value;
  }
}

CUresult AliasTable::hide(const uint32_t* first, bool* untouched) {
  Lock lock(mutex_);
  for (uint32_t a = *first; a != 0; a = aliases_[a].next) {
    Alias& alias = aliases_[a];
    if (!alias.mapped) continue;
    const CUresult result = calls_->unmap(calls_->self, alias.address, alias.size);
    if (result != CUDA_SUCCESS) return result;
    alias.mapped = false;
    *untouched = false;
  }
  return CUDA_SUCCESS;
}

CUresult AliasTable::show(const uint32_t* first, uint64_t handle) {
  Lock lock(mutex_);
  for (uint32_t a = *first; a != 0; a = aliases_[a].next) {
    Alias& alias = aliases_[a];
    if (alias.stale) continue;
    CUresult result = CUDA_SUCCESS;
    if (!alias.mapped) {
      result = calls_->map(calls_->self, alias.address, alias.size, alias.offset, handle);
      alias.mapped = result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS && alias.access != 0) {
      result = calls_->allow(calls_->self, alias.address, alias.size, alias.access);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult AliasTable::end(uint32_t first) {
  CUresult result = CUDA_SUCCESS;
  Lock lock(mutex_);
  for (uint32_t a = first; a != 0;) {
    const Alias alias = aliases_[a];
    aliases_.give_back(a);
    a = alias.next;
    if (!alias.mapped) continue;
    const CUresult unmapped = calls_->unmap(calls_->self, alias.address, alias.size);
    if (result == CUDA_SUCCESS) result = unmapped;
  }
  return result;
}

}  // namespace gpurota::interposer
