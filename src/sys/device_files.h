// The driver's device files and their access lists (ACLs). Never opens a device, because that would
// wake its GPU.
//
// /dev belongs to root and is in memory, and no driver is involved: none of this waits for users or
// GPUs. read_device_openers() walks all of /proc and is slow: call it on a worker.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "core/device_fence.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpurota::sys {

struct DeviceFile {
  std::uint64_t inode = 0;  // changes when the file is made anew
  uid_t owner = 0;
  std::string acl;  // numeric ids: "user::rw-,user:1001:rw-,group::---,mask::rw-,other::---"
  std::optional<DeviceNumber> number{};  // nullopt: a plain file of a test
  bool operator==(const DeviceFile&) const = default;
};
// By name below /dev: "nvidia0", "nvidia-caps/nvidia-cap30".
using DeviceFiles = std::map<std::string, DeviceFile>;

// The driver's device files in `root`. On a machine `root` is "", and only character devices count;
// a test's folder may have plain files.
Result<DeviceFiles> read_device_files(const std::string& root);
// Replaces the ACL in one step: nobody ever sees a state in between. kGone if the file no longer
// has this inode.
Result<void> set_device_acl(const std::string& root, const std::string& name, std::uint64_t inode,
                            const std::string& acl);

// A descriptor that becomes readable when a file in `root`/dev, or in its folder of capabilities,
// is made or gets another mode or ACL. Reading it never blocks.
Result<Fd> watch_device_files(const std::string& root);
// Reads all pending events, so that the next change makes `watch` readable again.
void take_device_changes(int watch);

// The text of /proc/driver/nvidia/params and /proc/driver/nvidia-caps/mig-minors in `root`; empty
// where there is no such file.
std::string read_driver_params(const std::string& root);
std::string read_mig_minors(const std::string& root);

struct DeviceOpener {
  pid_t pid = 0;
  uid_t uid = 0;
  std::set<gid_t> groups;
  std::set<std::string> files;  // of `names`
};
// The processes that have files of `names` open, each with the names of these files.
std::vector<DeviceOpener> read_device_openers(const std::string& root,
                                              const std::set<std::string>& names);

}  // namespace gpurota::sys
