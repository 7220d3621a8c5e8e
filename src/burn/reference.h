// Computes on the host the expected results of the kernels of `gpurota burn`, to compare a GPU's
// results with. Exact to the last bit (IEEE multiply and fused multiply-add). Pure; see
// kernels.ptx.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpurota::burn {

inline constexpr std::size_t kLanes = 32;  // threads of a warp: each has its own orbits
inline constexpr std::size_t kOrbits = 8;  // of one thread, side by side to fill its pipeline
// Steps of one repeat: about a millisecond for a full grid on GPUs from Pascal to Hopper.
inline constexpr std::uint32_t kSteps = 4096;
// One multiplication and one fused multiply-add.
inline constexpr std::uint64_t kFlopsPerStep = 3;

// For each lane, the hash that burn_compute must produce after `steps` steps.
std::array<std::uint32_t, kLanes> expected_results(std::uint32_t steps);

}  // namespace gpurota::burn
