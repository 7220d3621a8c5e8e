#include "burn/reference.h"

#include <bit>
#include <cmath>

namespace gpurota::burn {
namespace {

constexpr float kGrowth = 3.99F;
constexpr std::uint32_t kHashStart = 2166136261U, kHashFactor = 16777619U;

}  // namespace

std::array<std::uint32_t, kLanes> expected_results(std::uint32_t steps) {
  std::array<std::uint32_t, kLanes> results = {};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::uint32_t hash = kHashStart;
    for (std::size_t orbit = 0; orbit < kOrbits; ++orbit) {
      float x = std::fma(static_cast<float>(lane * kOrbits + orbit), 1.0F / 512, 0.25F);
      for (std::uint32_t step = 0; step < steps; ++step) {
        const float grown = kGrowth * x;
        x = std::fma(-grown, x, grown);
      }
      hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * kHashFactor;
    }
    results[lane] = hash;
  }
  return results;
}

}  // namespace gpurota::burn
