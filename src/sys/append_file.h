// A file of lines that only grows, and has only whole lines after a crash. One thread.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace gpurota::sys {

class AppendFile {
 public:
  // Opens or makes the file, mode 0600, never through a symbolic link. Removes a last line without
  // a newline, which only a crash of the machine leaves.
  static Result<AppendFile> open(const std::string& path);

  // `line` must end with a newline. Afterwards either the whole line is in the file or none of it.
  Result<void> append(std::string_view line);
  std::uint64_t size() const { return size_; }

 private:
  AppendFile(Fd fd, std::uint64_t size) : fd_(std::move(fd)), size_(size) {}
  Fd fd_;
  std::uint64_t size_;
};

}  // namespace gpurota::sys
