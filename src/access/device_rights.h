// Strict access: who may open which of the driver's device files (docs/design/strict-access.md).
// Pure: only computes the rights, which StrictAccess of the daemon sets.
//
// Two kinds of files are managed: one for each GPU (nvidia0), and two for each MIG instance
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

// The capabilities of MIG instances: the name ("gpu0/gi1/access", "gpu0/gi1/ci0/access") and the
// number of its file. Other capabilities are left out.
using MigMinors = std::map<std::string, int>;
// The driver's /proc/driver/nvidia-caps/mig-minors.
MigMinors parse_mig_minors(std::string_view text);

// The kind of a file, by its name below /dev; nothing: the file is not managed.
std::optional<FileKind> kind_of(std::string_view name, const MigMinors& minors);

// The files that a process opens to use these GPUs. A MIG instance needs the file of its GPU, too.
std::set<std::string> files_of(const std::vector<GpuInfo>& gpus, const std::set<GpuUuid>& uuids,
                               const MigMinors& minors);

// A user who has a GPU.
struct Holding {
  uid_t uid = 0;
  GpuUuid gpu;
};
// The users who hold each file's GPUs, by the name of the file.
std::map<std::string, std::set<uid_t>> holders(const std::vector<GpuInfo>& gpus,
                                               const std::vector<Holding>& holdings,
                                               const MigMinors& minors);

// The whole access list of a file, with numbers for names, as acl_to_any_text() prints it:
// "user::rw-,user:1001:rw-,…". The file's group has no rights. The group bits of the mode show the
// mask, so the mode is 0660 (0440), which is what the driver's helper compares.
std::string acl_text(FileKind kind, bool owner_may, const Who& who);

// The fences of a lease's processes. Of the managed files (`numbers`, by name) the processes can
// open only those in `open`. A GPU or an instance that is added later is fenced, too. No fences
// where `numbers` has no managed files.
DeviceFences fences(const std::map<std::string, DeviceNumber>& numbers,
                    const std::set<std::string>& open, const MigMinors& minors);

// The mode that the driver's helper (nvidia-modprobe), which any user can run, sets on device
// files, from /proc/driver/nvidia/params. Nothing: the helper does not change them, or the text has
// no such parameters.
std::optional<mode_t> mode_of_helper(std::string_view params);
// With this mode the helper leaves the access list of acl_text() as it is. Any other mode would
// give everybody access, or take access from holders.
constexpr mode_t kHarmlessMode = 0660;

}  // namespace gpurota::access
