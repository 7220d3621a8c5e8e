#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace gpurota {
namespace {

struct Range {
  std::uint32_t low;
  std::uint32_t high;
};

#include "base/width_tables.inc"

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

template <std::size_t N>
bool contains(const Range (&table)[N], std::uint32_t code) {
  const Range* range = std::lower_bound(
      std::begin(table), std::end(table), code,
      [](const Range& candidate, std::uint32_t wanted) { return candidate.high < wanted; });
  return range != std::end(table) && range->low <= code;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;  // bytes it takes; 0: the first byte starts no valid sequence
};

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// The code point at the front of a non-empty `text`. Overlong forms, surrogates and values above
// U+10FFFF are invalid, as RFC 3629 has it.
CodePoint decode(std::string_view text) {
  const std::uint8_t first = byte_at(text, 0);
  if (first < 0x80) return {first, 1};
  std::size_t size = 0;
  if (first >= 0xC2 && first <= 0xDF) size = 2;
  if (first >= 0xE0 && first <= 0xEF) size = 3;
  if (first >= 0xF0 && first <= 0xF4) size = 4;
  if (size == 0 || text.size() < size) return {};
  std::uint32_t value = first & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const std::uint8_t next = byte_at(text, i);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3Fu);
  }
  const bool overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return {};
  return {value, size};
}

bool is_plain_for_shell(char c) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || static_cast<unsigned char>(c) >= 0x80 || kPlain.find(c) != std::string::npos;
}

void append_quoted(std::string* out, std::string_view word, bool is_command) {
  const bool assignment = is_command && word.find('=') != std::string_view::npos;
  if (!word.empty() && !assignment && std::all_of(word.begin(), word.end(), is_plain_for_shell)) {
    out->append(word);
    return;
  }
  out->push_back('\'');
  for (char c : word) {
    if (c == '\'') {
      out->append("'\\''");
    } else {
      out->push_back(c);
    }
  }
  out->push_back('\'');
}

}  // namespace

std::string display_text(std::string_view foreign, std::size_t max_columns) {
  std::string out;
  std::size_t columns = 0;
  std::size_t last_start = 0;
  while (!foreign.empty()) {
    if (columns == max_columns) {
      if (max_columns > 0) out.replace(last_start, std::string::npos, kEllipsis);
      return out;
    }
    last_start = out.size();
    const CodePoint point = decode(foreign);
    if (point.size == 0 || contains(kHidden, point.value)) {
      out.append(kReplacement);
    } else {
      out.append(foreign.substr(0, point.size));
    }
    foreign.remove_prefix(std::max<std::size_t>(point.size, 1));
    ++columns;
  }
  return out;
}

std::string valid_utf8(std::string_view foreign) {
  std::string out;
  out.reserve(foreign.size());
  while (!foreign.empty()) {
    const CodePoint point = decode(foreign);
    out.append(point.size == 0 ? kReplacement : foreign.substr(0, point.size));
    foreign.remove_prefix(std::max<std::size_t>(point.size, 1));
  }
  return out;
}

std::size_t display_width(std::string_view utf8) {
  std::size_t columns = 0;
  while (!utf8.empty()) {
    const CodePoint point = decode(utf8);
    if (point.size == 0) {
      columns += 1;  // shown as U+FFFD
    } else if (contains(kWide, point.value)) {
      columns += 2;
    } else if (!contains(kZero, point.value)) {
      columns += 1;
    }
    utf8.remove_prefix(std::max<std::size_t>(point.size, 1));
  }
  return columns;
}

std::string display_command(const std::vector<std::string>& argv, std::size_t max_columns) {
  // A code point is at most four bytes: beyond this nothing more can be shown.
  const std::size_t enough = 4 * max_columns + 4;
  std::string line;
  for (std::size_t i = 0; i < argv.size() && line.size() <= enough; ++i) {
    if (i > 0) line.push_back(' ');
    append_quoted(&line, argv[i], i == 0);
  }
  return display_text(line, max_columns);
}

}  // namespace gpurota
