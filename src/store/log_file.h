// The write-ahead log beside the database, as a file whose contents the disk is to have. SQLite
// writes it; this has a descriptor of its own, so that waiting for the disk holds up nobody who
// uses the database meanwhile. Used by SqliteStore only.
//
// After sync() a client is told that its change is done. So the mark (store_mark.h) says then how
// far the log goes: a log that was cut, or damaged, since then is found when the database is opened
// again.
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
  // The mark says no more how far the log goes: closing the database removes it.
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // A change was written, which ends with this frame.
  void on_commit(std::uint64_t frames);
  // Returns when the disk has what was written before the call; by one thread at a time. Once it
  // has failed it fails: the kernel forgets what it could not write, and says so once.
  Result<void> sync();
  // The log's content is in the database, and the log is empty: an earlier failure does not matter
  // any more.
  void on_emptied();
  // Sets the mark; from now on sync() has it say how far the log goes.
  void begin_marks(const StoreMark& mark);
  // The mark says so no more, before the log is emptied: a log that is shorter is none that was
  // cut.
  Result<void> end_marks();

 private:
  Result<void> open();
  bool open_mark();
  void write_mark(const LogPosition& position);

  std::string path_, mark_path_;
  Fd fd_, mark_fd_;
  bool failed_ = false;
  std::optional<std::uint64_t> settled_;  // of the mark; nothing: it is left as it is
  bool marked_ = false;                   // it says how far the log goes
  std::mutex mutex_;                      // over what follows
  LogPosition position_;
};

}  // namespace gpurota::store
