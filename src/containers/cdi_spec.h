// Descriptions of devices for container engines: specs of the Container Device Interface (CDI),
// version 0.5, which later engines read, too. Pure: structs in, text out. The daemon writes the
// specs (daemon/leases/cdi_specs.h). Engines read them: docker 25, podman 4.1, containerd 1.7,
// CRI-O, and what is built on them.
#pragma once

#include "containers/driver_files.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpurota::containers {

// Vendor and class: the part before the '=' of `--device gpurota.dev/lease=L12`.
inline constexpr std::string_view kCdiLease = "gpurota.dev/lease";
inline constexpr std::string_view kCdiGpu = "gpurota.dev/gpu";
// The only device of kCdiGpu: an automatic lease.
inline constexpr std::string_view kCdiAny = "any";

// The variables, mounts and devices that a container gets.
struct CdiEdits {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<Mount> mounts;  // read-only
  std::vector<Mount> devices;
};

// Letters, digits, '.', '_', '-' and ':', with a letter or a digit at both ends: an engine refuses
// a whole file for one invalid name.
bool is_cdi_name(std::string_view name);

// "alice.web": the name of a user's lease as a device. The device names of two users never collide,
// although each user chooses lease names freely. A '.' in the user's name is doubled
// ("first..last.web"), and a lease's name begins with a letter. So the first run of an odd number
// of dots ends the user's part.
std::string own_cdi_name(std::string_view user, std::string_view lease);

// Each of `names` is a device with these edits. JSON.
std::string cdi_text(std::string_view kind, const std::vector<std::string>& names,
                     const CdiEdits& edits);

}  // namespace gpurota::containers
