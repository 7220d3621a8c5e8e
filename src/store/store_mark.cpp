#include "store/store_mark.h"

#include "base/fd.h"
#include "base/replace_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

constexpr const char* kWhatThen =
    "leases are forgotten, so gpurota run ends its commands, and GPU memory that other programs "
    "hold is unreserved use, which gpurota status shows";

// SQLite's smallest page. SQLite takes a smaller file for a new one, and writes over it.
constexpr off_t kLeastDatabase = 512;

// 0: there is no such file.
off_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

const char* state_of(const std::string& database) {
  if (!is_there(database)) return "not there";
  return size_of(database) == 0 ? "empty" : "cut short";
}

bool has_entries(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  return !error && entries != std::filesystem::directory_iterator();
}

// The path of a file or folder that shows that there was a database; empty if there is none.
std::string sign_of_one(const std::string& state_dir, const std::string& database) {
  if (is_there(mark_path(state_dir))) return mark_path(state_dir);
  if (size_of(database) > 0) return database;
  if (size_of(database + "-wal") > 0) return database + "-wal";
  for (const char* folder : {"/jobs", "/fillers"}) {
    if (has_entries(state_dir + folder)) return state_dir + folder;
  }
  return {};
}

}  // namespace

std::string mark_path(const std::string& state_dir) { return state_dir + "/store.mark"; }

std::string mark_text(const StoreMark& mark) {
  constexpr std::size_t kSize = 96;
  std::string text = fmt::format("{}\n", mark.settled);
  if (mark.log.frames != 0) {
    text += fmt::format("{} {} {} {}", mark.log.number, mark.log.salt[0], mark.log.salt[1],
                        mark.log.frames);
  }
  text.resize(kSize - 1, ' ');
  return text + "\n";
}

Result<std::optional<StoreMark>> read_mark(const std::string& state_dir) {
  const std::string path = mark_path(state_dir);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::optional<StoreMark>();
  if (!fd) return fail_errno("cannot open " + path, errno);
  char text[256];
  const ssize_t size = ::read(fd.get(), text, sizeof text);
  if (size < 0) return fail_errno("cannot read " + path, errno);
  std::istringstream words(std::string(text, static_cast<std::size_t>(size)));
  StoreMark mark;
  if (!(words >> mark.settled)) return std::optional(StoreMark());
  LogPosition log;
  if (words >> log.number >> log.salt[0] >> log.salt[1] >> log.frames) mark.log = log;
  return std::optional(mark);
}

Result<void> replace_mark(const std::string& path, const StoreMark& mark) {
  return replace_file(path, mark_text(mark), 0600);
}

Result<void> check_is_there(const std::string& state_dir, const std::string& database) {
  if (size_of(database) >= kLeastDatabase) return {};
  const std::string sign = sign_of_one(state_dir, database);
  if (sign.empty()) return {};
  return fail(Code::kIo,
              fmt::format("the state in {0} is lost: the file is {1}, and {2} shows that there was "
                          "one with leases and jobs in it. Nothing was changed. Put a copy of it "
                          "back; or, to go on without it, move {2} away and start gpurotad again: "
                          "{3}",
                          database, state_of(database), sign, kWhatThen));
}

Result<void> check_is_whole(const std::string& state_dir, const std::string& database,
                            const StoreMark& mark, std::uint64_t settled,
                            const std::optional<LogPosition>& log) {
  if (settled < mark.settled) {
    return fail(
        Code::kIo,
        fmt::format("the state in {0} is damaged: it is older than {1} says, so its log "
                    "{0}-wal was lost or damaged, or an older copy was put back. Nothing was "
                    "changed. Put the newer one back; or, to go on with what there is, move "
                    "{1} away and start gpurotad again. Of leases made since then: {2}",
                    database, mark_path(state_dir), kWhatThen));
  }
  // If the log has begun anew since the mark was written, all changes up to then are in the
  // database. A database that was settled since has all these changes too.
  const bool began_anew = settled > mark.settled || (log && log->number > mark.log.number);
  const bool is_same = log && log->is_same_log(mark.log);
  const bool has_all = is_same && log->frames >= mark.log.frames;
  // Another SQLite that has the database open (sqlite3, or a copy) writes the whole log into the
  // database when it closes, and then removes the log. If the log was lost instead, the count of
  // the last settling was lost with it, and the check above finds that.
  if (mark.log.frames == 0 || began_anew || has_all || !log) return {};
  return fail(
      Code::kIo,
      fmt::format(
          "the state in {0} is damaged: the end of its log {0}-wal was lost or damaged, and "
          "with it the last changes, which gpurotad had confirmed ({3} of {4} parts are "
          "whole). Nothing was changed. Put the whole log back; or, to go on with what there "
          "is, move {1} away and start gpurotad again. Of leases made since then: {2}",
          database, mark_path(state_dir), kWhatThen, is_same ? log->frames : 0, mark.log.frames));
}

}  // namespace gpurota::store
