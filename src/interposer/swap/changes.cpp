// The part of the mover that hashes: finds which parts of the memory to be evicted have changed
// since the last eviction. Nobody writes to that memory meanwhile: the gate is shut and the GPU
// drained.
//
// The sums are not trusted blindly: before the GPU memory of a batch is given up, the host copies a
// few pieces of the batch and hashes them. After one wrong sum nothing is hashed in this process
// again. Memory that cannot be hashed, or whose pieces cannot be compared, is copied.
#include "interposer/swap/mover.h"

#include <cstring>

namespace gpurota::interposer {
namespace {

constexpr uint32_t kPiecesPerUnit = kUnitBytes / kPieceBytes;
// Pieces of each batch that the host checks; half of them are taken from units that seem unchanged.
constexpr int kChecks = 4;
// If every part of a block changes each time, about 31 of 32 evictions of the block go without
// hashing.
constexpr uint8_t kMostChanged = 5;

static_assert(kUnitBytes % kPieceBytes == 0);
static_assert(kMostBlock / kUnitBytes <= 32, "Block::stale has a bit for each unit");

uint32_t units_of(const Block& block) { return static_cast<uint32_t>(block.size / kUnitBytes); }

uint32_t all_units(const Block& block) {
  return static_cast<uint32_t>((uint64_t{1} << (block.size + kUnitBytes - 1) / kUnitBytes) - 1);
}

// The extent of unit `unit` of the block. `in_extent`: the unit's number in the extent.
uint32_t find_unit(const Block& block, uint32_t unit, uint32_t* in_extent) {
  uint32_t i = 0;
  while (unit >= block.host.extents[i].count) unit -= block.host.extents[i++].count;
  *in_extent = unit;
  return i;
}

}  // namespace

static_assert(Mover::kBatch * (kMostBlock / kPieceBytes) <= kHashSums);

HashSum Mover::sum_of_unit(const HashSum* sums, uint32_t unit) const {
  HashSum sum{};
  for (uint32_t i = 0; i < kPiecesPerUnit; ++i) sum = sum + sums[unit * kPiecesPerUnit + i];
  return sum;
}

uint64_t Mover::roll(uint64_t below) {
  uint64_t& x = space_.dice_;
  if (x == 0) x = space_.hash_seed_ | 1;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x % below;
}

// Begins to hash a batch. All units count as stale until their sums are compared. False: nothing is
// hashed.
bool Mover::begin_hash(Batch* batch, HashSum* sums) {
  uint32_t used = 0;
  bool can = sums != nullptr;
  for (uint32_t i = 0; i < batch->count; ++i) {
    Block& block = space_.blocks_[batch->blocks[i]];
    const bool here = block.state == BlockState::kResident;
    batch->sums[i] = kHashSums;
    block.summed = false;
    block.stale = here && block.copy_valid ? 0 : all_units(block);
    if (!can || !here || block.copy_valid || block.size % kUnitBytes != 0) continue;
    if (block.unseen != 0) {
      --block.unseen;
      continue;
    }
    last_ = calls_.hash(calls_.self, block.address, block.size, space_.hash_seed_, sums + used);
    can = last_ == CUDA_SUCCESS;
    if (!can) continue;
    block.undrained = true;
    batch->sums[i] = used;
    used += static_cast<uint32_t>(block.size / kPieceBytes);
  }
  return used != 0;
}

void Mover::compare(Block& block, const HashSum* sums) {
  if (!block.kept) return;
  for (uint32_t unit = 0; unit < units_of(block); ++unit) {
    uint32_t in_extent = 0;
    const HostExtent& extent = block.host.extents[find_unit(block, unit, &in_extent)];
    if (space_.host_.sum(extent, in_extent) == sum_of_unit(sums, unit)) {
      block.stale &= ~(1u << unit);
    }
  }
  const bool all = block.stale == all_units(block);
  if (!all) {
    block.changed = 0;
  } else if (block.changed < kMostChanged) {
    ++block.changed;
  }
  if (all) block.unseen = static_cast<uint8_t>((1u << block.changed) - 1);
}

// Keeps the sums of the bytes that host memory will have once the stale units have been copied.
void Mover::keep_sums(Block& block, const HashSum* sums) {
  if (!find_host(block)) return;
  if (block.stale != 0) block.kept = false;
  for (uint32_t unit = 0; unit < units_of(block); ++unit) {
    uint32_t in_extent = 0;
    const HostExtent& extent = block.host.extents[find_unit(block, unit, &in_extent)];
    space_.host_.set_sum(extent, in_extent, sum_of_unit(sums, unit));
  }
  block.summed = true;
}

// Whether the host computes the same sum of the same bytes. If the unit seems clean, also whether
// host memory has the same bytes.
Mover::Verdict Mover::check_hash(Block& block, uint32_t piece, const HashSum& sum) {
  PinnedPiece& check = space_.check_;
  if (!check.have(calls_, kUnitBytes, &last_)) return Verdict::kUnknown;
  char* copy = check.memory;
  check.in_doubt = true;
  block.undrained = true;
  last_ = calls_.copy_out(calls_.self, copy, block.address + piece * kPieceBytes, kPieceBytes);
  if (last_ == CUDA_SUCCESS) last_ = wait_for_copies(calls_);
  if (last_ != CUDA_SUCCESS) return Verdict::kUnknown;
  check.in_doubt = false;
  block.undrained = false;
  const HashSum own = hash_memory(copy, kPieceBytes, piece * kWordsPerPiece, space_.hash_seed_);
  if (own != sum) return Verdict::kWrong;
  const uint32_t unit = piece / kPiecesPerUnit;
  if ((block.stale >> unit & 1) != 0) return Verdict::kRight;
  uint32_t in_extent = 0;
  const HostExtent& extent = block.host.extents[find_unit(block, unit, &in_extent)];
  const char* kept =
      space_.host_.address(extent) + in_extent * kUnitBytes + piece % kPiecesPerUnit * kPieceBytes;
  return memcmp(copy, kept, kPieceBytes) == 0 ? Verdict::kRight : Verdict::kWrong;
}

Mover::Verdict Mover::check_hash(const Batch& batch, const HashSum* sums) {
  for (int i = 0; i < kChecks; ++i) {
    const bool clean = i < kChecks / 2;
    const auto first = static_cast<uint32_t>(roll(batch.count));
    for (uint32_t step = 0; step < batch.count; ++step) {
      const uint32_t at = (first + step) % batch.count;
      Block& block = space_.blocks_[batch.blocks[at]];
      if (batch.sums[at] == kHashSums || (clean && block.stale == all_units(block))) continue;
      auto unit = static_cast<uint32_t>(roll(units_of(block)));
      while (clean && (block.stale >> unit & 1) != 0) unit = (unit + 1) % units_of(block);
      const uint32_t piece = unit * kPiecesPerUnit + static_cast<uint32_t>(roll(kPiecesPerUnit));
      const Verdict verdict = check_hash(block, piece, sums[batch.sums[at] + piece]);
      if (verdict != Verdict::kRight) return verdict;
      break;
    }
  }
  return Verdict::kRight;
}

void Mover::find_changes(Batch* batch) {
  HashSum* sums = calls_.hash_sums != nullptr ? calls_.hash_sums(calls_.self) : nullptr;
  if (!begin_hash(batch, sums)) return;
  if (wait_for_copies(calls_) != CUDA_SUCCESS)
    return;  // each block is waited for again before it is unmapped
  for (uint32_t i = 0; i < batch->count; ++i) {
    if (batch->sums[i] == kHashSums) continue;
    Block& block = space_.blocks_[batch->blocks[i]];
    block.undrained = false;
    compare(block, sums + batch->sums[i]);
  }
  const Verdict verdict = check_hash(*batch, sums);
  if (verdict == Verdict::kWrong) calls_.distrust_hash(calls_.self);
  for (uint32_t i = 0; i < batch->count; ++i) {
    if (batch->sums[i] == kHashSums) continue;
    Block& block = space_.blocks_[batch->blocks[i]];
    if (verdict == Verdict::kRight) {
      keep_sums(block, sums + batch->sums[i]);
    } else {
      block.stale = all_units(block);
    }
  }
}

}  // namespace gpurota::interposer
