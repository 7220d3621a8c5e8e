// UTF-8 by code points, and the tables of their properties: which are never shown, and how wide the
// others are. The only place of these tables; used by text.cpp and escape.cpp alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace gpurota::code_points {

struct Range {
  std::uint32_t low;
  std::uint32_t high;
};

#include "base/width_tables.inc"

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

template <std::size_t N>
bool contains(const Range (&table)[N], std::uint32_t code) {
  const Range* range = std::lower_bound(
      std::begin(table), std::end(table), code,
      [](const Range& candidate, std::uint32_t wanted) { return candidate.high < wanted; });
  return range != std::end(table) && range->low <= code;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;  // length in bytes; 0: the first byte starts no valid sequence
};

inline std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// The code point at the front of a non-empty `text`. Overlong forms, surrogates and values above
// U+10FFFF are invalid, as RFC 3629 requires.
inline CodePoint decode(std::string_view text) {
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

}  // namespace gpurota::code_points
