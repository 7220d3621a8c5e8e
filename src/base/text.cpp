#include "base/text.h"

#include "base/code_points.h"

#include <algorithm>

namespace gpurota {
namespace {

using namespace code_points;

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";  // U+2026

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
