// A file beside the database, STATE_DIR/store.mark, shows whether the database is the one that was
// there. Without it, a database that was emptied, or whose log was lost, would pass for one that
// never had a lease in it. Used by SqliteStore only; errors say what to do.
//
// The file has the number of times that the database was settled. The database counts this too, as
// the first change in its new log: as long as it is the same database with the same log, its count
// is at least that of the mark. The second line is the position of the log's end when a client was
// last told that a change is done (LogFile): the log goes at least as far.
#pragma once

#include "base/result.h"
#include "store/log_position.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpurota::store {

struct StoreMark {
  std::uint64_t settled = 0;
  LogPosition log;  // no frames: not in the mark
};

std::string mark_path(const std::string& state_dir);
// Always of the same size, so that the mark can be overwritten in place.
std::string mark_text(const StoreMark& mark);
// Nothing: there was no database yet, or one of a gpurota that left no mark. A value that is not a
// number counts as 0.
Result<std::optional<StoreMark>> read_mark(const std::string& state_dir);
// Replaces the mark whole or not at all. Returns when the disk has it.
Result<void> replace_mark(const std::string& path, const StoreMark& mark);

// Call before the database is opened, which would make it. kIo: the database is missing, empty or
// cut short, but the mark, its log, or folders of jobs and fillers show that there was one.
Result<void> check_is_there(const std::string& state_dir, const std::string& database);
// Call once the database is open and before it is changed. `settled`: how many times the database
// has been settled, by its own count. `log`: the log as it was found; empty: there was none. kIo:
// the database was settled fewer times than the mark says, or the log ends before the position in
// the mark. A missing log is no error if the database was settled as many times as the mark says:
// another SQLite has then written the log into the database.
Result<void> check_is_whole(const std::string& state_dir, const std::string& database,
                            const StoreMark& mark, std::uint64_t settled,
                            const std::optional<LogPosition>& log);

}  // namespace gpurota::store
