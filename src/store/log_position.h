// How far a write-ahead log of SQLite goes: up to which frame its changes are whole
// (https://www.sqlite.org/walformat.html).
#pragma once

#include "base/result.h"

#include <array>
#include <cstdint>
#include <string>

namespace gpurota::store {

struct LogPosition {
  std::uint32_t number = 0;             // of the log: one more each time that it begins anew
  std::array<std::uint32_t, 2> salt{};  // of this log, in each of its frames
  std::uint64_t frames = 0;             // up to the end of the last change; 0: there is no log

  bool is_same_log(const LogPosition& other) const {
    return number == other.number && salt == other.salt;
  }
  bool operator==(const LogPosition&) const = default;
};

// Of the whole changes in it, as SQLite would read them. One that is not there, or is not a log,
// has none.
Result<LogPosition> read_log(const std::string& path);
// Which log it is, by its head alone; `frames` is 0. Number and salt are 0 where it has no good
// head.
LogPosition read_log_head(int fd);

}  // namespace gpurota::store
