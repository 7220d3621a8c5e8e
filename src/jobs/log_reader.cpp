#include "jobs/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace gpurota::jobs {
namespace {

struct Half {
  LogFile* file = nullptr;
  std::uint64_t number = 0;
};

// The older file first; an empty file has no number.
struct Halves {
  Half older, newer;
  const Half& oldest() const { return older.number == 0 ? newer : older; }
};

Result<Halves> find_halves(LogFile& a, LogFile& b) {
  Halves halves{{&a, 0}, {&b, 0}};
  GPUROTA_ASSIGN_OR_RETURN(halves.older.number, read_log_number(a));
  GPUROTA_ASSIGN_OR_RETURN(halves.newer.number, read_log_number(b));
  if (halves.older.number > halves.newer.number) std::swap(halves.older, halves.newer);
  return halves;
}

// kGone: the file has been emptied for newer lines meanwhile.
Result<std::string> read_half(const Half& half, std::uint64_t offset, std::size_t most) {
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t size, half.file->size());
  std::string text;
  if (size > offset) {
    const std::size_t bytes = std::min<std::uint64_t>(size - offset, most);
    GPUROTA_ASSIGN_OR_RETURN(text, half.file->read(offset, bytes));
  }
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t number, read_log_number(*half.file));
  if (number != half.number) return fail(Code::kGone, "the log has been rotated");
  return text;
}

// The last bytes of a file, at most this many, and where they end.
struct Tail {
  std::string text;
  std::uint64_t end = kLogHeaderBytes;
};

Result<Tail> read_tail(const Half& half, std::size_t most) {
  Tail tail;
  GPUROTA_ASSIGN_OR_RETURN(const std::uint64_t size, half.file->size());
  if (size <= kLogHeaderBytes) return tail;
  const std::uint64_t bytes = std::min<std::uint64_t>(size - kLogHeaderBytes, most);
  GPUROTA_ASSIGN_OR_RETURN(tail.text, read_half(half, size - bytes, bytes));
  tail.end = size - bytes + tail.text.size();
  return tail;
}

// The number of bytes at the end that are an incomplete character.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

// Leaves an incomplete character at the end to the next read. `last`: how many bytes of the part
// come from the file in which the part ends.
void cut_unfinished(LogPart* part, std::size_t last) {
  const std::size_t rest = unfinished(part->text);
  if (rest > last) return;
  part->text.resize(part->text.size() - rest);
  part->next.offset -= rest;
}

// Reads only the bytes that are asked for, as a log may be large.
Result<LogPart> read_end(LogFile& a, LogFile& b, std::size_t most) {
  GPUROTA_ASSIGN_OR_RETURN(const Halves halves, find_halves(a, b));
  if (halves.newer.number == 0) return LogPart{};
  // Read one byte more, which shows whether the part begins at the start of a line.
  const std::size_t wanted = most == SIZE_MAX ? most : most + 1;
  GPUROTA_ASSIGN_OR_RETURN(Tail newer, read_tail(halves.newer, wanted));
  Tail older;
  if (halves.older.number != 0 && newer.text.size() < wanted) {
    GPUROTA_ASSIGN_OR_RETURN(older, read_tail(halves.older, wanted - newer.text.size()));
  }
  LogPart part{older.text + newer.text, {halves.newer.number, newer.end}, false};
  cut_unfinished(&part, newer.text.size());
  if (part.text.size() <= most) return part;
  const std::size_t cut = part.text.size() - most;
  const auto line = part.text.find('\n', cut - 1);
  part.text.erase(0, line == std::string::npos ? cut : line + 1);
  return part;
}

// Reads again if a file has been emptied for newer lines meanwhile.
template <class Read>
Result<LogPart> try_again(const Read& read) {
  constexpr int kTries = 4;
  auto part = read();
  for (int i = 1; i < kTries && !part && part.error().code == Code::kGone; ++i) part = read();
  return part;
}

Result<LogPart> read_once(LogFile& a, LogFile& b, LogCursor from, std::size_t most) {
  GPUROTA_ASSIGN_OR_RETURN(const Halves halves, find_halves(a, b));
  LogPart part{"", from, false};
  if (halves.newer.number == 0) {
    part.next = {};
    return part;
  }
  if (from.number != halves.older.number && from.number != halves.newer.number) {
    // A reader that starts at the first line misses nothing if the first file is still there.
    const std::uint64_t oldest = halves.oldest().number;
    part.missed = from.number < oldest && !(from.number == 0 && oldest == 1);
    part.next = {oldest, kLogHeaderBytes};
  } else if (from.number == 0) {
    part.next = {halves.newer.number, kLogHeaderBytes};
    part.missed = halves.newer.number != 1;
  }
  std::size_t last = 0;
  for (;;) {
    const bool newest = part.next.number == halves.newer.number;
    GPUROTA_ASSIGN_OR_RETURN(
        const std::string text,
        read_half(newest ? halves.newer : halves.older, part.next.offset, most - part.text.size()));
    part.text += text;
    part.next.offset += last = text.size();
    if (newest || part.text.size() >= most) break;
    // The older file no longer grows.
    part.next = {halves.newer.number, kLogHeaderBytes};
  }
  cut_unfinished(&part, last);
  return part;
}

}  // namespace

std::string to_string(const LogCursor& cursor) {
  return fmt::format("{}:{}", cursor.number, cursor.offset);
}

std::optional<LogCursor> parse_log_cursor(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto read = [](std::string_view digits, std::uint64_t& out) {
    const char* const end = digits.data() + digits.size();
    return std::from_chars(digits.data(), end, out).ptr == end && !digits.empty();
  };
  LogCursor cursor;
  if (!read(text.substr(0, colon), cursor.number)) return std::nullopt;
  if (!read(text.substr(colon + 1), cursor.offset)) return std::nullopt;
  return cursor;
}

Result<LogPart> read_log_from(LogFile& a, LogFile& b, LogCursor from, std::size_t most) {
  return try_again([&] { return read_once(a, b, from, most); });
}

Result<LogPart> read_log(LogFile& a, LogFile& b, std::size_t most) {
  return try_again([&] { return read_end(a, b, most); });
}

}  // namespace gpurota::jobs
