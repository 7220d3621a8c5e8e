// The write-ahead log beside the database, as a file whose contents the disk is to have. SQLite writes it; this has a descriptor of
// its own, so that waiting for the disk holds up nobody who uses the database meanwhile. Used by SqliteStore only.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace gpurota::store {

class LogFile {
 public:
  // `database`: its path; empty: in memory.
  explicit LogFile(const std::string& database);

  // Returns when the disk has what was written before the call; by one thread at a time. Once it has failed it fails: the kernel
  // forgets what it could not write, and says so once.
  Result<void> sync();
  // What was in it is in the database, and it is empty: what failed is of no matter any more.
  void on_emptied() { failed_ = false; }

 private:
  std::string path_;
  Fd fd_;
  bool failed_ = false;
};

}  // namespace gpurota::store
