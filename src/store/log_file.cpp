#include "store/log_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace gpurota::store {

LogFile::LogFile(const std::string& database, std::string mark)
    : path_(database.empty() ? "" : database + "-wal"), mark_path_(std::move(mark)) {}

LogFile::~LogFile() { (void)end_marks(); }

Result<void> LogFile::open() {
  if (!fd_) fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_) return fail_errno("cannot open " + path_, errno);
  return {};
}

// A frame number that does not grow means that the log began anew: the first change of the new log
// ends before the last one of the old log.
void LogFile::on_commit(std::uint64_t frames) {
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  const bool is_new = position_.frames == 0 || frames <= position_.frames;
  if (is_new && !open()) return;
  if (is_new) position_ = read_log_head(fd_.get());
  const bool is_known = position_.salt[0] != 0 || position_.salt[1] != 0;
  position_.frames = is_known ? frames : 0;
}

Result<void> LogFile::sync() {
  if (path_.empty()) return {};
  if (failed_) return fail_errno("the disk has lost what was written to " + path_, EIO);
  LogPosition written;
  {
    const std::lock_guard lock(mutex_);
    const auto opened = open();
    if (!opened && opened.error().native == ENOENT) return {};  // nothing was written yet
    GPUROTA_TRY(opened);
    written = position_;
  }
  if (::fdatasync(fd_.get()) != 0) {
    failed_ = true;
    return fail_errno("cannot write " + path_ + " to the disk", errno);
  }
  write_mark(written);
  return {};
}

// Overwrites the mark in place, which needs no room on the disk. Does not wait for the disk, which
// has the log already: after a loss of power an older mark only detects less. A mark that cannot be
// written stays as it is.
void LogFile::write_mark(const LogPosition& position) {
  if (!settled_ || position.frames == 0 || !open_mark()) return;
  const std::string text = mark_text({*settled_, position});
  const ssize_t size = ::pwrite(mark_fd_.get(), text.data(), text.size(), 0);
  marked_ = marked_ || size > 0;
  (void)::sync_file_range(mark_fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
}

void LogFile::on_emptied() {
  const std::lock_guard lock(mutex_);
  failed_ = false;
  position_ = {};
}

void LogFile::begin_marks(const StoreMark& mark) {
  settled_ = mark.settled;
  marked_ = mark.log.frames != 0;
  mark_fd_.reset();
}

Result<void> LogFile::end_marks() {
  const bool is_there = settled_ && marked_ && (open_mark() || errno != ENOENT);
  if (is_there) {
    const std::string text = mark_text({*settled_, {}});
    const ssize_t size = ::pwrite(mark_fd_.get(), text.data(), text.size(), 0);
    if (size != static_cast<ssize_t>(text.size()) || ::fdatasync(mark_fd_.get()) != 0)
      return fail_errno("cannot write " + mark_path_, errno);
  }
  settled_.reset();
  marked_ = false;
  mark_fd_.reset();
  return {};
}

bool LogFile::open_mark() {
  if (!mark_fd_) mark_fd_ = Fd(::open(mark_path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return static_cast<bool>(mark_fd_);
}

}  // namespace gpurota::store
