// For whoever reads a text file that people write. Pure.
#pragma once

#include <string_view>

namespace gpurota {

// Without the byte order mark with which some editors begin a file.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace gpurota
