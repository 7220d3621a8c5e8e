// The variables of an environment that belong to a lease (GPUROTA_LEASE_VARIABLES of abi/env.h), so
// that those of one lease can replace another's. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// The prefixes with which Apptainer and SingularityCE set variables in a container; "": no prefix.
inline constexpr std::array<std::string_view, 3> kContainerPrefixes = {"", "APPTAINERENV_",
                                                                       "SINGULARITYENV_"};

// The names outside of containers.
std::vector<std::string> lease_variables();
// Whether a variable of this name belongs to a lease, with or without a container prefix.
bool belongs_to_lease(std::string_view name);
// Whether the name is LD_PRELOAD, with or without a container prefix.
bool is_preload(std::string_view name);
// An LD_PRELOAD list without libgpurota. Nothing: it has no other library.
std::optional<std::string> without_library(std::string_view preload);
// The value in an environment such as environ. Nothing: not set.
std::optional<std::string> find_variable(const char* const* environment, std::string_view name);

}  // namespace gpurota::cli
