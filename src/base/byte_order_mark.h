// For code that reads text files written by people. Pure.
#pragma once

#include <string_view>

namespace gpurota {

// `text` without the byte order mark that some editors write at the start of a file.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace gpurota
