// How device files were before they were changed, on the disk: what is not stored there is never
// changed, so that any later daemon can put it back. Calls wait for the disk.
#pragma once

#include "base/result.h"
#include "sys/device_files.h"

#include <map>
#include <string>

namespace gpurota::sys {

// Empty where there is no file, or where it is of another boot: the device files were made anew
// since.
Result<DeviceFiles> read_device_memory(const std::string& path, const std::string& boot_id);
// Replaces the file; it is on the disk when this returns.
Result<void> write_device_memory(const std::string& path, const std::string& boot_id,
                                 const DeviceFiles& files);
Result<void> remove_device_memory(const std::string& path);

// Gives the device files of `root` back the lists of `files`, without waiting for the disk. A list
// that could not be restored stays in `files`; it is returned by name, with the reason. A file that
// was made anew is left as its maker made it.
std::map<std::string, std::string> restore_device_files(const std::string& root,
                                                        DeviceFiles& files);

}  // namespace gpurota::sys
