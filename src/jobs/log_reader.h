// Reads a job's log (log_ring.h) while another process may be writing it: the end of the log, or
// all that follows a given place. Pure but for the files, which are behind LogFile.
#pragma once

#include "jobs/log_ring.h"

#include <optional>
#include <string>
#include <string_view>

namespace gpurota::jobs {

// A place in the log: the number of a file and an offset in that file. Rotation does not change it.
struct LogCursor {
  std::uint64_t number = 0;  // 0: before everything
  std::uint64_t offset = 0;
  bool operator==(const LogCursor&) const = default;
};
std::string to_string(const LogCursor& cursor);  // "3:1200"
std::optional<LogCursor> parse_log_cursor(std::string_view text);

struct LogPart {
  std::string text;
  LogCursor next;       // where this part ended
  bool missed = false;  // the output before this part has been overwritten
};

// The text of both files, in order, without their headers: at most `most` bytes of its end,
// beginning with a whole line if it is cut. Does not read the rest of the log.
Result<LogPart> read_log(LogFile& a, LogFile& b, std::size_t most);
// At most `most` bytes, beginning at this place. The text never ends within a character of UTF-8. A
// place that is no longer in the log counts as the log's beginning.
Result<LogPart> read_log_from(LogFile& a, LogFile& b, LogCursor from, std::size_t most);

}  // namespace gpurota::jobs
