// A folder of small files that root's programs and users' read: specs of devices for container
// engines. In memory, so that whoever writes there waits for no disk.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::sys {

// Makes it if it is not there. kDenied: it is somebody else's, or others write there, who could
// give containers what they like; kUnavailable: it is on a disk.
Result<void> make_spec_folder(const std::string& path);
// The old one or the new one is there at any moment. `reader` alone reads it, beside us and root;
// nothing: everybody. If the reader is another user, the file system must have access lists.
Result<void> write_spec(const std::string& path, const std::string& text,
                        std::optional<uid_t> reader);
// By name, those whose name begins with `prefix`. Drafts of write_spec() that were left are
// removed. None where the folder is not there.
Result<std::map<std::string, std::string>> read_specs(const std::string& folder,
                                                      const std::string& prefix);

}  // namespace gpurota::sys
