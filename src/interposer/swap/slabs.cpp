#include "interposer/swap/slabs.h"

namespace gpurota::interposer {
namespace {

bool bit(const uint64_t* bits, uint32_t i) { return (bits[i / 64] >> (i % 64) & 1) != 0; }
void set_bit(uint64_t* bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
void clear_bit(uint64_t* bits, uint32_t i) { bits[i / 64] &= ~(uint64_t{1} << (i % 64)); }

uint32_t granules_of(uint64_t size) {
  return static_cast<uint32_t>((size + kGranule - 1) / kGranule);
}

}  // namespace

uint32_t Slabs::add(uint64_t page) {
  const uint32_t s = slabs_.take();
  if (s == 0) return 0;
  slabs_[s].page = page;
  slabs_[s].free = kGranules;
  slabs_[s].next = first_;
  first_ = s;
  return s;
}

void Slabs::remove(uint32_t slab) {
  uint32_t* link = &first_;
  while (*link != slab) link = &slabs_[*link].next;
  *link = slabs_[slab].next;
  slabs_.give_back(slab);
}

// First fit.
bool Slabs::carve(uint64_t size, uint64_t* address) {
  const uint32_t wanted = granules_of(size);
  for (uint32_t s = first_; s != 0; s = slabs_[s].next) {
    Slab& slab = slabs_[s];
    if (slab.free < wanted) continue;
    uint32_t run = 0;
    for (uint32_t i = 0; i < kGranules; ++i) {
      run = bit(slab.used, i) ? 0 : run + 1;
      if (run < wanted) continue;
      const uint32_t first = i + 1 - wanted;
      for (uint32_t g = first; g <= i; ++g) set_bit(slab.used, g);
      set_bit(slab.begins, first);
      slab.free -= wanted;
      *address = slab.page + first * kGranule;
      return true;
    }
  }
  return false;
}

bool Slabs::uncarve(uint32_t s, uint64_t address, bool* empty) {
  Slab& slab = slabs_[s];
  const uint64_t offset = address - slab.page;
  const auto first = static_cast<uint32_t>(offset / kGranule);
  if (offset % kGranule != 0 || !bit(slab.begins, first)) return false;
  clear_bit(slab.begins, first);
  for (uint32_t i = first; i < kGranules && bit(slab.used, i) && !bit(slab.begins, i); ++i) {
    clear_bit(slab.used, i);
    ++slab.free;
  }
  *empty = slab.free == kGranules;
  return true;
}

bool Slabs::find(uint32_t s, uint64_t address, FoundRange* out) {
  const Slab& slab = slabs_[s];
  auto first = static_cast<uint32_t>((address - slab.page) / kGranule);
  if (!bit(slab.used, first)) return false;
  while (!bit(slab.begins, first)) --first;
  uint32_t end = first + 1;
  while (end < kGranules && bit(slab.used, end) && !bit(slab.begins, end)) ++end;
  *out = {slab.page + first * kGranule, uint64_t{end - first} * kGranule};
  return true;
}

}  // namespace gpurota::interposer
