// The write-ahead log beside the database, as a file whose contents must reach the disk. SQLite
// writes the log. LogFile has a descriptor of its own, so that waiting for the disk holds up nobody
// who uses the database meanwhile. Used by SqliteStore only.
//
// After sync() a client is told that its change is done. The mark (store_mark.h) then records how
// far the log goes, so that a log that was cut, or damaged, since then is found when the database
// is opened again.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "store/log_position.h"
#include "store/store_mark.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace gpurota::store {

class LogFile {
 public:
  // `database`: its path; empty: in memory. `mark`: the path of the mark.
  LogFile(const std::string& database, std::string mark);
  // Removes the log's position from the mark, because closing the database removes the log.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // A change was written that ends with frame `frames`.
  void on_commit(std::uint64_t frames);
  // Returns when the disk has what was written before the call. Called by one thread at a time.
  // After a failure every call fails, as the kernel drops what it could not write and reports that
  // only once.
  Result<void> sync();
  // The log's content is in the database, and the log is empty: an earlier failure no longer
  // matters.
  void on_emptied();
  // Sets the mark. From now on sync() records in the mark how far the log goes.
  void begin_marks(const StoreMark& mark);
  // Removes the log's position from the mark. Call before the log is emptied: the shorter log must
  // not pass for one that was cut.
  Result<void> end_marks();

 private:
  Result<void> open();
  bool open_mark();
  void write_mark(const LogPosition& position);

  std::string path_, mark_path_;
  Fd fd_, mark_fd_;
  bool failed_ = false;
  std::optional<std::uint64_t> settled_;  // of the mark; nothing: the mark is left as it is
  bool marked_ = false;                   // the mark says how far the log goes
  std::mutex mutex_;                      // guards what follows
  LogPosition position_;
};

}  // namespace gpurota::store
