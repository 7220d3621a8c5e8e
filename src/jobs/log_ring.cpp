#include "jobs/log_ring.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpurota::jobs {
namespace {

constexpr std::string_view kMagic = "gpurota-log 1 ";
constexpr std::size_t kDigits = 20;
constexpr std::size_t kHeader = kLogHeaderBytes;
static_assert(kHeader == kMagic.size() + kDigits + 1);

std::string header_of(std::uint64_t number) {
  return fmt::format("{}{:0{}}\n", kMagic, number, kDigits);
}

// 0: this is not a whole header.
std::uint64_t parse_header(std::string_view text) {
  if (text.size() != kHeader || !text.starts_with(kMagic) || text.back() != '\n') return 0;
  std::uint64_t number = 0;
  for (const char c : text.substr(kMagic.size(), kDigits)) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

}  // namespace

Result<std::uint64_t> read_log_number(LogFile& file) {
  GPUROTA_ASSIGN_OR_RETURN(const std::string header, file.read(0, kHeader));
  return parse_header(header);
}

LogRing::LogRing(LogFile& a, LogFile& b, Bytes bound)
    : half_(std::max(bound, kLeastBound).count() / 2) {
  files_[0].file = &a;
  files_[1].file = &b;
}

Result<void> LogRing::open() {
  for (File& file : files_) {
    GPUROTA_ASSIGN_OR_RETURN(file.size, file.file->size());
    GPUROTA_ASSIGN_OR_RETURN(file.number, read_log_number(*file.file));
  }
  current_ = files_[1].number > files_[0].number ? 1 : 0;
  const File& current = files_[current_];
  if (current.number == 0 || current.size <= kHeader) return {};
  GPUROTA_ASSIGN_OR_RETURN(const std::string last, current.file->read(current.size - 1, 1));
  in_line_ = interrupted_ = last.empty() || last.front() != '\n';
  return {};
}

std::uint64_t LogRing::room() const {
  const File& current = files_[current_];
  return current.number == 0 || current.size >= half_ ? 0 : half_ - current.size;
}

Result<void> LogRing::write(std::string_view text) {
  if (text.empty()) return {};
  auto written = write_notes();
  if (written) written = write_all(text);
  // `text` is now the part that could not be written.
  if (!written) dropped_ += text.size();
  return written;
}

// Writes what has to come before new output: the end of an interrupted line, and how much was lost.
Result<void> LogRing::write_notes() {
  std::string note = interrupted_ ? "\n" : "";
  if (dropped_ > 0) {
    note = fmt::format("{}[gpurota: {} bytes of output could not be written]\n",
                       in_line_ ? "\n" : "", dropped_);
  }
  std::string_view rest = note;
  GPUROTA_TRY(write_all(rest));
  dropped_ = 0;
  interrupted_ = false;
  return {};
}

// Removes from `text` the part that has been written.
Result<void> LogRing::write_all(std::string_view& text) {
  while (!text.empty()) {
    std::string_view part = text.substr(0, room());
    if (part.size() < text.size()) {
      // Up to the last whole line that fits. A line that no file could hold is cut where it must
      // be.
      const auto newline = part.rfind('\n');
      const bool at_start = files_[current_].size <= kHeader;
      if (newline != std::string_view::npos) {
        part = part.substr(0, newline + 1);
      } else if (!at_start && !in_line_) {
        part = {};
      }
    }
    if (part.empty()) {
      GPUROTA_TRY(turn());
    } else {
      GPUROTA_TRY(append(part));
      text.remove_prefix(part.size());
    }
  }
  return {};
}

Result<void> LogRing::append(std::string_view text) {
  File& current = files_[current_];
  auto appended = current.file->append(text);
  if (!appended) {
    // A part may have been written: ask the file for its size.
    if (const auto size = current.file->size(); size && *size != current.size) {
      current.size = *size;
      const auto last = current.file->read(*size - 1, 1);
      in_line_ = !last || last->empty() || last->front() != '\n';
    }
    return appended;
  }
  current.size += text.size();
  in_line_ = text.back() != '\n';
  return {};
}

Result<void> LogRing::turn() {
  const bool fresh = files_[0].number == 0 && files_[1].number == 0;
  const std::size_t next = fresh ? current_ : 1 - current_;
  File& file = files_[next];
  const std::uint64_t number = std::max(files_[0].number, files_[1].number) + 1;
  file.number = 0;
  GPUROTA_TRY(file.file->make_empty());
  file.size = 0;
  GPUROTA_TRY(file.file->append(header_of(number)));
  file.size = kHeader;
  file.number = number;
  current_ = next;
  return {};
}

}  // namespace gpurota::jobs
