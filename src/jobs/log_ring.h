// A job's output, bounded in size: two files, one for new output and one with older output. When
// the first is full, the other is emptied and gets the new output. So at least the newest half of
// the bound can be read, and the disk never holds more than the bound. No file is renamed: the
// writer needs two open files and no directory.
//
//     "gpurota-log 1 00000000000000000042\n" lines …      the number says which of two is newer
//
// An interruption (a crash, a full disk) leaves whole lines: a file without a whole first line
// counts as empty, and an unfinished last line is ended before the next line is written. Pure but
// for the files, which are behind LogFile.
#pragma once

#include "base/bytes.h"
#include "base/result.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gpurota::jobs {

// The bound of the log of one job, or of one filler.
inline constexpr Bytes kLogBound = mib(16);

class LogFile {
 public:
  virtual ~LogFile() = default;
  virtual Result<std::uint64_t> size() = 0;
  // Reads `bytes` bytes, beginning at `offset`; fewer only at the end.
  virtual Result<std::string> read(std::uint64_t offset, std::size_t bytes) = 0;
  // Appends. May write a part and fail then.
  virtual Result<void> append(std::string_view text) = 0;
  virtual Result<void> make_empty() = 0;
};

class LogRing {
 public:
  static constexpr Bytes kLeastBound = kKiB + kKiB + kKiB + kKiB;

  // Both files outlive the LogRing. `bound`: of both files together, at least kLeastBound.
  LogRing(LogFile& a, LogFile& b, Bytes bound);

  // Call once, before the first write: finds out where the last writer stopped.
  Result<void> open();
  // Writes the text in order, and changes to the other file at the end of a line, unless a line is
  // longer than a file. Output that cannot be written is dropped and counted; a line in the log
  // says so as soon as a line can be written.
  Result<void> write(std::string_view text);
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct File {
    LogFile* file = nullptr;
    std::uint64_t size = 0;
    std::uint64_t number = 0;  // 0: no whole header
  };

  Result<void> write_notes();
  Result<void> write_all(std::string_view& text);
  Result<void> append(std::string_view text);
  Result<void> turn();
  std::uint64_t room() const;

  std::array<File, 2> files_;
  std::size_t current_ = 0;
  std::uint64_t half_;
  std::uint64_t dropped_ = 0;
  bool in_line_ = false;      // the last byte written was not a newline
  bool interrupted_ = false;  // and the rest of that line has been lost
};

// The number of a log file; 0 if its first line is not whole. For log_reader.h.
Result<std::uint64_t> read_log_number(LogFile& file);
inline constexpr std::size_t kLogHeaderBytes = 35;

}  // namespace gpurota::jobs
