// The figures that are kept of a GPU and of a lease in each time step, and how the figures of
// several steps are merged. Pure.
//
// A column is never removed and never changes its meaning, because rows on disk identify columns by
// position. New columns go to the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpurota::series {

enum class Kind : std::uint8_t { kGpu, kLease };

// Columns of a GPU. Loads are per mille, memory is in MiB, power in tenths of a watt, temperature
// in tenths of a degree.
enum GpuColumn : std::size_t {
  kLoad,
  kMaxLoad,
  kMemory,
  kMaxMemory,
  kPower,
  kMaxPower,
  kHeat,
  kMaxHeat,
  kClock,   // MHz
  kLimits,  // bits of ClockLimit
  kEcc,     // since the driver was loaded
  kXid,     // in the step
  kHolder,  // the lease (its number) that had the turn at the end of the step
  kGpuColumns
};

enum LeaseColumn : std::size_t {
  kUsed,
  kMaxUsed,
  kSm,  // 1000 is one GPU
  kMaxSm,
  kEvictions,  // in the step
  kWaited,     // milliseconds of the step
  kLeaseColumns
};

enum class Rule { kMean, kMost, kBits, kLast, kSum };
struct Column {
  Rule rule;
  std::uint64_t most;  // a higher value is stored as this
};

inline constexpr std::array<Column, kGpuColumns> kGpuRules = {{{Rule::kMean, 1000},
                                                               {Rule::kMost, 1000},
                                                               {Rule::kMean, (1U << 28U) - 2},
                                                               {Rule::kMost, (1U << 28U) - 2},
                                                               {Rule::kMean, (1U << 21U) - 2},
                                                               {Rule::kMost, (1U << 21U) - 2},
                                                               {Rule::kMean, (1U << 14U) - 2},
                                                               {Rule::kMost, (1U << 14U) - 2},
                                                               {Rule::kMean, (1U << 14U) - 2},
                                                               {Rule::kBits, (1U << 14U) - 2},
                                                               {Rule::kLast, (1U << 28U) - 2},
                                                               {Rule::kSum, (1U << 21U) - 2},
                                                               {Rule::kLast, (1ULL << 35U) - 2}}};
inline constexpr std::array<Column, kLeaseColumns> kLeaseRules = {{{Rule::kMean, (1U << 28U) - 2},
                                                                   {Rule::kMost, (1U << 28U) - 2},
                                                                   {Rule::kMean, (1U << 21U) - 2},
                                                                   {Rule::kMost, (1U << 21U) - 2},
                                                                   {Rule::kSum, (1U << 21U) - 2},
                                                                   {Rule::kSum, (1U << 21U) - 2}}};

constexpr std::span<const Column> rules_of(Kind kind) {
  return kind == Kind::kGpu ? std::span<const Column>(kGpuRules)
                            : std::span<const Column>(kLeaseRules);
}

}  // namespace gpurota::series
