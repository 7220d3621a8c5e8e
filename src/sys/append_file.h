// A file of lines that is only ever appended to, and is whole after a crash. One thread.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gpurota::sys {

class AppendFile {
 public:
  // Opens or makes the file, mode 0600, never through a symbolic link. A last line without an end,
  // which only a crash of the machine leaves, is cut off.
  static Result<AppendFile> open(const std::string& path);

  // `line` ends with a newline. All of it is in the file afterwards, or nothing.
  Result<void> append(std::string_view line);
  std::uint64_t size() const { return size_; }

 private:
  AppendFile(Fd fd, std::uint64_t size) : fd_(std::move(fd)), size_(size) {}
  Fd fd_;
  std::uint64_t size_;
};

}  // namespace gpurota::sys
