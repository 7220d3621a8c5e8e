// Computes on the host the results of the kernels of `gpurota burn`: the truth that a GPU is
// compared with. Exact to the last bit (IEEE multiply and fused multiply-add). Pure; see
// kernels.ptx.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpurota::burn {

inline constexpr std::size_t kLanes = 32;  // threads of a warp: each has orbits of its own
inline constexpr std::size_t kOrbits = 8;  // of one thread, side by side to fill its pipeline
// Steps of one repeat: on GPUs from Pascal to Hopper about a millisecond for a full grid.
inline constexpr std::uint32_t kSteps = 4096;
// A multiplication and a fused multiply-add.
inline constexpr std::uint64_t kFlopsPerStep = 3;

// For each lane the hash that burn_compute must arrive at after `steps` steps.
std::array<std::uint32_t, kLanes> expected_results(std::uint32_t steps);

}  // namespace gpurota::burn
