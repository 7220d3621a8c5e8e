// Whether the database is the one that was there: a file beside it says so, STATE_DIR/store.mark.
// Else one that was emptied, or whose log was lost, would be taken for one that never had a lease
// in it. Used by SqliteStore only; errors say what to do.
//
// In the file is how often the database was settled. The database counts that too, first of all in
// its new log: as long as it is the same database with the same log, it knows of at least as many
// times as the mark. On a second line stands how far that log went when somebody was last told that
// something is done (LogFile): the log has at least as much.
#pragma once

#include "base/result.h"
#include "store/log_position.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gpurota::store {

struct StoreMark {
  std::uint64_t settled = 0;
  LogPosition log;  // of no frames: not said
};

std::string mark_path(const std::string& state_dir);
// Always of the same size, so that it can be written over.
std::string mark_text(const StoreMark& mark);
// Nothing: there was no database yet, or one of a gpurota that left no mark. A value that is no
// number counts as 0.
Result<std::optional<StoreMark>> read_mark(const std::string& state_dir);
// Returns when the disk has it, whole or not at all.
Result<void> replace_mark(const std::string& path, const StoreMark& mark);

// Before the database is opened, which would make it. kIo: it is not there, empty or cut short, and
// there was one: the mark, its log, or folders of jobs and fillers say so.
Result<void> check_is_there(const std::string& state_dir, const std::string& database);
// Once it is open and before it is changed: how often it was settled, by its own count, and its log
// as it was found. kIo: less often, or less far, than the mark says. No `log`: there was none. If
// the database was settled as often all the same, the log has been taken into the database by
// another SQLite.
Result<void> check_is_whole(const std::string& state_dir, const std::string& database,
                            const StoreMark& mark, std::uint64_t settled,
                            const std::optional<LogPosition>& log);

}  // namespace gpurota::store
