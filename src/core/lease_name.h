// The name that a user gives a lease, to write it wherever an id can stand: "train7". Pure.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string_view>

namespace gpurota {

inline constexpr std::size_t kMostLeaseName = 64;

// Letters, digits, '.', '_' and '-', with a letter first, and not like an id (L7, r12). An error
// says which of these.
Result<void> check_lease_name(std::string_view name);

}  // namespace gpurota
