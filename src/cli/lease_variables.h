// The variables of an environment that belong to a lease (GPUROTA_LEASE_VARIABLES of abi/env.h), so
// that one lease's can replace another's. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpurota::cli {

// How Apptainer and SingularityCE are told of variables of a container; the first stands for none.
inline constexpr std::array<std::string_view, 3> kContainerPrefixes = {"", "APPTAINERENV_",
                                                                       "SINGULARITYENV_"};

// The names, for programs outside of containers.
std::vector<std::string> lease_variables();
// Whether a variable of this name belongs to a lease, also one that is for a container.
bool belongs_to_lease(std::string_view name);
// Whether the name is LD_PRELOAD, also for a container.
bool is_preload(std::string_view name);
// A list as the dynamic linker reads it, without libgpurota. Nothing: no other library is in it.
std::optional<std::string> without_library(std::string_view preload);
// Of an environment such as environ. Nothing: it is not set.
std::optional<std::string> find_variable(const char* const* environment, std::string_view name);

}  // namespace gpurota::cli
