// The driver's device files and their access lists (ACLs). No device is ever opened: opening one
// would wake its GPU.
//
// /dev is root's, in memory, and no driver is asked: none of this waits for users or GPUs.
// read_device_openers() walks all of /proc and takes its time: for a worker.
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
  std::uint64_t inode = 0;  // another one: the file was made anew
  uid_t owner = 0;
  std::string acl;  // with numbers: "user::rw-,user:1001:rw-,group::---,mask::rw-,other::---"
  std::optional<DeviceNumber> number{};  // nothing: a test's plain file
  bool operator==(const DeviceFile&) const = default;
};
// By name below /dev: "nvidia0", "nvidia-caps/nvidia-cap30".
using DeviceFiles = std::map<std::string, DeviceFile>;

// The driver's device files in `root`: "" on a machine, where only character devices count; a
// test's folder may have plain files.
Result<DeviceFiles> read_device_files(const std::string& root);
// In one step: nobody ever sees another state than the one before and the one after. kGone where
// the file is not the one of this inode any more.
Result<void> set_device_acl(const std::string& root, const std::string& name, std::uint64_t inode,
                            const std::string& acl);

// Readable when a file came, or mode or list of one changed, in `root`/dev or its folder of
// capabilities; never blocks.
Result<Fd> watch_device_files(const std::string& root);
// Takes what is there to be read, so that the next change is seen.
void take_device_changes(int watch);

// /proc/driver/nvidia/params and /proc/driver/nvidia-caps/mig-minors in `root`; empty where they
// are not there.
std::string read_driver_params(const std::string& root);
std::string read_mig_minors(const std::string& root);

struct DeviceOpener {
  pid_t pid = 0;
  uid_t uid = 0;
  std::set<gid_t> groups;
  std::set<std::string> files;  // of `names`
};
// The processes that have files of `names` open, by the names under which they opened them.
std::vector<DeviceOpener> read_device_openers(const std::string& root,
                                              const std::set<std::string>& names);

}  // namespace gpurota::sys
