#include "base/escape.h"

#include "base/code_points.h"

#include <fmt/format.h>

namespace gpurota {
namespace {

using namespace code_points;

bool is_plain_ascii(char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

std::string escape_of(std::uint32_t code, Escapes escapes) {
  if (code <= 0xFFFF) return fmt::format("\\u{:04X}", code);
  if (escapes == Escapes::kToml) return fmt::format("\\U{:08X}", code);
  const std::uint32_t above = code - 0x10000;
  return fmt::format("\\u{:04X}\\u{:04X}", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF));
}

}  // namespace

std::string escape_hidden(std::string_view document, Escapes escapes) {
  std::string out;
  out.reserve(document.size());
  while (!document.empty()) {
    const auto end = std::find_if_not(document.begin(), document.end(), is_plain_ascii);
    const auto plain = static_cast<std::size_t>(end - document.begin());
    out.append(document.substr(0, plain));
    document.remove_prefix(plain);
    if (document.empty()) break;
    const CodePoint point = decode(document);
    if (point.size == 0) {
      out.append(kReplacement);
    } else if (contains(kHidden, point.value)) {
      out.append(escape_of(point.value, escapes));
    } else {
      out.append(document.substr(0, point.size));
    }
    document.remove_prefix(std::max<std::size_t>(point.size, 1));
  }
  return out;
}

}  // namespace gpurota
