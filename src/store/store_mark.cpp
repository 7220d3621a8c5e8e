#include "store/store_mark.h"

#include "base/fd.h"
#include "base/replace_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::store {
namespace {

constexpr const char* kWhatThen =
    "leases are forgotten, so gpurota run ends its commands, and GPU memory that other programs "
    "hold is unreserved use, which gpurota status shows";

std::string path_of(const std::string& state_dir) { return state_dir + "/store.mark"; }

// The smallest page that SQLite has: it takes a file with less for a new one, and writes over it.
constexpr off_t kLeastDatabase = 512;

// 0: it is not there.
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

// What shows that there was a database; empty: nothing.
std::string sign_of_one(const std::string& state_dir, const std::string& database) {
  if (is_there(path_of(state_dir))) return path_of(state_dir);
  if (size_of(database) > 0) return database;
  if (size_of(database + "-wal") > 0) return database + "-wal";
  for (const char* folder : {"/jobs", "/fillers"}) {
    if (has_entries(state_dir + folder)) return state_dir + folder;
  }
  return {};
}

}  // namespace

Result<std::optional<std::uint64_t>> read_mark(const std::string& state_dir) {
  const std::string path = path_of(state_dir);
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::optional<std::uint64_t>();
  if (!fd) return fail_errno("cannot open " + path, errno);
  char text[32];
  const ssize_t size = ::read(fd.get(), text, sizeof text);
  if (size < 0) return fail_errno("cannot read " + path, errno);
  std::uint64_t settled = 0;
  std::from_chars(text, text + size, settled);
  return std::optional(settled);
}

Result<void> write_mark(const std::string& state_dir, std::uint64_t settled) {
  return replace_file(path_of(state_dir), fmt::format("{}\n", settled), 0600);
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
                            std::optional<std::uint64_t> mark, std::uint64_t settled) {
  if (!mark || settled >= *mark) return {};
  return fail(Code::kIo,
              fmt::format("the state in {0} is damaged: it is older than {1} says, so its log "
                          "{0}-wal was lost or damaged, or an older copy was put back. Nothing was "
                          "changed. Put the newer one back; or, to go on with what there is, move "
                          "{1} away and start gpurotad again. Of leases made since then: {2}",
                          database, path_of(state_dir), kWhatThen));
}

}  // namespace gpurota::store
