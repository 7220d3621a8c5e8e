// Writing small files that must be whole, and there, after a crash. Any thread; blocks as long as
// the disk does.
#pragma once

#include "base/result.h"

#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace gpurota {

using PrepareFile = std::function<Result<void>(int fd)>;

// Puts a file of this text in the place of `path`: the old one or the new one is there at any
// moment, and the new one is on the disk on return. The text is written beside it, as PATH.new, a
// file that was not there before. Fails as fail_errno() does; the old one is still there then,
// unless only its folder could not be settled. Its mode is `mode` whatever the umask is; `prepare`,
// if any, does more to it before it is there.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode,
                          const PrepareFile& prepare = {});
// Waits until the disk has what was made, renamed or removed at `path`.
Result<void> settle_folder_of(const std::string& path);

}  // namespace gpurota
