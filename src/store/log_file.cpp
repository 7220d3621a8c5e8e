#include "store/log_file.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::store {

LogFile::LogFile(const std::string& database) : path_(database.empty() ? "" : database + "-wal") {}

Result<void> LogFile::sync() {
  if (path_.empty()) return {};
  if (failed_) return fail_errno("the disk has lost what was written to " + path_, EIO);
  if (!fd_) fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_ && errno == ENOENT) return {};  // nothing was written since there is this database
  if (!fd_) return fail_errno("cannot open " + path_, errno);
  if (::fdatasync(fd_.get()) == 0) return {};
  failed_ = true;
  return fail_errno("cannot write " + path_ + " to the disk", errno);
}

}  // namespace gpurota::store
