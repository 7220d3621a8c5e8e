// Writes small files that must be complete after a crash. Any thread; blocks as long as the disk
// does.
#pragma once

#include "base/result.h"

#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota {

using PrepareFile = std::function<Result<void>(int fd)>;

// Replaces `path` by a file with this text: at any moment either the old or the new file is there,
// and on return the new one is on the disk. Writes the text to a new file PATH.new first. Fails as
// fail_errno() does; the old file is then still there, unless only the sync of the folder failed.
// The mode is `mode` whatever the umask is; `prepare`, if any, changes the draft further before it
// replaces `path`.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode,
                          const PrepareFile& prepare = {});
// Waits until the disk has the creation, rename or removal of `path`.
Result<void> settle_folder_of(const std::string& path);

}  // namespace gpurota
