// Stores on the disk how device files were before gpurota changed them. A file is changed only
// after it has been stored, so that any later daemon can restore it. Calls wait for the disk.
#pragma once

#include "base/result.h"
#include "sys/device_files.h"

#include <map>
#include <string>

namespace gpurota::sys {

// Empty if there is no stored file, or if it is from another boot: the device files have been made
// anew since.
Result<DeviceFiles> read_device_memory(const std::string& path, const std::string& boot_id);
// Replaces the stored file; the new one is on the disk when this returns.
Result<void> write_device_memory(const std::string& path, const std::string& boot_id,
                                 const DeviceFiles& files);
Result<void> remove_device_memory(const std::string& path);

// Restores the ACLs in `files` on the device files in `root`, without waiting for the disk. An ACL
// that could not be restored stays in `files`, and is returned by name with the reason. A device
// file made anew is left as its maker made it.
std::map<std::string, std::string> restore_device_files(const std::string& root,
                                                        DeviceFiles& files);

}  // namespace gpurota::sys
