// A folder of small files that programs of root and of users read: device specs for container
// engines. The folder is in memory, so that writing there never waits for a disk.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpurota::sys {

// Makes the folder if it is missing. kDenied: another user owns it or may write to it, and could
// give containers any device; kUnavailable: the folder is on a disk.
Result<void> make_spec_folder(const std::string& path);
// Writes a spec; at any moment either the old or the new one is there. Only we, root and `reader`
// may read the spec; without a reader, everybody may. If the reader is another user, the file
// system must support ACLs.
Result<void> write_spec(const std::string& path, const std::string& text,
                        std::optional<uid_t> reader);
// The specs whose names begin with `prefix`, by name. Removes drafts that write_spec() left. Empty
// if there is no such folder.
Result<std::map<std::string, std::string>> read_specs(const std::string& folder,
                                                      const std::string& prefix);

}  // namespace gpurota::sys
