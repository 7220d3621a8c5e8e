// How far a write-ahead log of SQLite goes: up to which frame its changes are whole
// (https://www.sqlite.org/walformat.html).
#pragma once

#include "base/result.h"

#include <array>
#include <cstdint>
#include <string>

namespace gpurota::store {

struct LogPosition {
  std::uint32_t number = 0;             // of the log; grows by one each time the log begins anew
  std::array<std::uint32_t, 2> salt{};  // of this log, in each of its frames
  std::uint64_t frames = 0;             // up to the end of the last change; 0: there is no log

  bool is_same_log(const LogPosition& other) const {
    return number == other.number && salt == other.salt;
  }
  bool operator==(const LogPosition&) const = default;
};

// The position after the last whole change in the log, as SQLite would read it. A file that is not
// there, or is not a log, has no frames.
Result<LogPosition> read_log(const std::string& path);
// Identifies the log by its head alone; `frames` is 0. Number and salt are 0 if the head is not
// valid.
LogPosition read_log_head(int fd);

}  // namespace gpurota::store
