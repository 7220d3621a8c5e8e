// The name that a user gives a lease, for use wherever an id is accepted: "train7". Pure.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string_view>

namespace gpurota {

inline constexpr std::size_t kMostLeaseName = 64;

// Letters, digits, '.', '_' and '-', starting with a letter, and not like an id (L7, r12). The
// error says which rule is broken.
Result<void> check_lease_name(std::string_view name);

}  // namespace gpurota
