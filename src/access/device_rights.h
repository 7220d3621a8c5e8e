// Strict access: who may open which of the driver's device files (docs/design/strict-access.md).
// Pure; StrictAccess of the daemon carries it out.
//
// Two kinds of files are looked after: one for each GPU (nvidia0), and two for each MIG instance
// (nvidia-caps/nvidia-cap30). All others (nvidiactl, nvidia-uvm, nvidia-modeset, the capabilities
// of administrators) stay as the driver makes them.
#pragma once

#include "core/device_fence.h"
#include "core/gpu.h"
#include "core/lease.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace gpurota::access {

struct Who {
  std::set<uid_t> users;
  std::set<gid_t> groups;
  bool operator==(const Who&) const = default;
};

enum class FileKind { kGpu, kCapability };

// Of MIG instances: "gpu0/gi1/access", "gpu0/gi1/ci0/access" and the number of the file; others are
// left out.
using MigMinors = std::map<std::string, int>;
// The driver's /proc/driver/nvidia-caps/mig-minors.
MigMinors parse_mig_minors(std::string_view text);

// Of a file by its name below /dev; nothing: it is not looked after.
std::optional<FileKind> kind_of(std::string_view name, const MigMinors& minors);

// The files by which some GPUs are used. A MIG instance has that of its GPU, too.
std::set<std::string> files_of(const std::vector<GpuInfo>& gpus, const std::set<GpuUuid>& uuids,
                               const MigMinors& minors);

// A user who has a GPU.
struct Holding {
  uid_t uid = 0;
  GpuUuid gpu;
};
// The holders of leases, by the name of the file.
std::map<std::string, std::set<uid_t>> holders(const std::vector<GpuInfo>& gpus,
                                               const std::vector<Holding>& holdings,
                                               const MigMinors& minors);

// The whole access list of a file, numbers for names, as acl_to_any_text() prints it:
// "user::rw-,user:1001:rw-,…". The group of the file has nothing, but its place shows the mask: the
// mode is 0660 (0440), which is what the driver's helper looks at.
std::string acl_text(FileKind kind, bool owner_may, const Who& who);

// The fences of a lease's processes: of the managed files (`numbers`, by name) they can open those
// in `open`. A GPU or an instance that comes later is fenced, too. Without such devices: none.
DeviceFences fences(const std::map<std::string, DeviceNumber>& numbers,
                    const std::set<std::string>& open, const MigMinors& minors);

// How the driver's helper (nvidia-modprobe), which any user can run, sets the mode of device files:
// /proc/driver/nvidia/params. Nothing: it leaves them alone, or there are no such parameters.
std::optional<mode_t> mode_of_helper(std::string_view params);
// Mode 0660 changes nothing of what acl_text() says; any other would open the files, or shut
// holders out.
constexpr mode_t kHarmlessMode = 0660;

}  // namespace gpurota::access
